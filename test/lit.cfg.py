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
