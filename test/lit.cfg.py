# How lit runs Quern's tests: this folder, and those that the build generates.
import os

import lit.formats

generated = getattr(config, "quern_generated", None)
config.name = "Quern generated" if generated else "Quern"
config.test_format = lit.formats.ShTest(True)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = generated or os.path.dirname(__file__)
config.test_exec_root = generated or os.path.join(config.quern_build, "test")
config.environment["PATH"] = os.pathsep.join(
    [config.quern_bin, config.llvm_tools, os.environ.get("PATH", "")])
config.substitutions.append(("%build", config.quern_build))
config.substitutions.append(("%cc", config.host_cc))
config.substitutions.append(("%include", config.quern_source + "/include"))
# Tests neither read nor fill the user's compile cache.
config.environment["QUERN_CACHE_DIR"] = ""
config.substitutions.append(("%src", config.quern_source))
config.substitutions.append(("%llvm_include", config.llvm_include))
