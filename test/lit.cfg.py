# How lit runs Quern's tests: this folder, and those that the build generates.
import os
import subprocess
import sys

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
config.substitutions.append(("%cxx", config.host_cxx))
config.substitutions.append(("%include", config.quern_source + "/include"))
# Tests neither read nor fill the user's compile cache.
config.environment["QUERN_CACHE_DIR"] = ""
config.substitutions.append(("%source", config.quern_source))
config.substitutions.append(("%python", sys.executable))
config.substitutions.append(("%llvm_include", config.llvm_include))
if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0:
    config.available_features.add("mount-namespace")
if config.shared_llvm != "ON":
    config.available_features.add("static-llvm")
