# How lit runs Quern's tests.
import os

import lit.formats

config.name = "Quern"
config.test_format = lit.formats.ShTest(True)
config.suffixes = [".mlir", ".test"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.quern_build, "test")
config.environment["PATH"] = os.pathsep.join(
    [config.quern_bin, config.llvm_tools, os.environ.get("PATH", "")])
config.substitutions.append(("%build", config.quern_build))
config.substitutions.append(("%cc", config.host_cc))
config.substitutions.append(("%include", config.quern_source + "/include"))
config.excludes = ["Inputs"]
# Tests neither read nor fill the user's compile cache.
config.environment["QUERN_CACHE_DIR"] = ""
