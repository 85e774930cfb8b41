# Quern's own build rules: libraries, tools, generated files.
include_guard()

# What every target of ours is compiled with. LLVM's headers are system headers,
# so that warnings are about our own code.
add_library(QuernOptions INTERFACE)
target_include_directories(QuernOptions INTERFACE ${CMAKE_SOURCE_DIR}/include
                                                  ${CMAKE_BINARY_DIR}/include)
target_include_directories(QuernOptions SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
target_compile_options(QuernOptions INTERFACE -Wall -Wextra -Wno-unused-parameter -Wno-deprecated-declarations
                       $<$<BOOL:${QUERN_WERROR}>:-Werror> -fno-semantic-interposition
                       -ffunction-sections -fdata-sections)
target_compile_definitions(QuernOptions INTERFACE QUERN_VERSION="${PROJECT_VERSION}")
if(QUERN_SANITIZE)
  target_compile_options(QuernOptions INTERFACE -fsanitize=address,undefined
                         -fno-sanitize=vptr,function -fno-omit-frame-pointer)
  target_link_options(QuernOptions INTERFACE -fsanitize=address,undefined)
endif()
target_link_options(QuernOptions INTERFACE -fuse-ld=lld -Wl,--gc-sections -Wl,--as-needed)
if(CMAKE_BUILD_TYPE STREQUAL Release AND NOT QUERN_WERROR AND NOT QUERN_SANITIZE)
  target_link_options(QuernOptions INTERFACE -Wl,-s)
else()
  # Our asserts are on in dev and asan (LLVM's packages have theirs compiled out).
  target_compile_options(QuernOptions INTERFACE -UNDEBUG)
endif()

# quern_static_closure(OUT root...): the archives behind exported MLIR and LLVM
# targets. Every exported MLIR target names the shared LLVM, which must not be
# linked beside the archives (two copies of every TypeID), so the walk skips it.
function(quern_static_closure out)
  set(seen)
  set(files)
  set(work ${ARGN})
  while(work)
    list(POP_FRONT work lib)
    if(lib IN_LIST seen OR lib MATCHES "^(LLVM|MLIR|Polly|-Wl,.*)$")
      continue()
    endif()
    list(APPEND seen ${lib})
    if(TARGET ${lib})
      get_target_property(type ${lib} TYPE)
      if(type STREQUAL STATIC_LIBRARY)
        list(APPEND files $<TARGET_FILE:${lib}>)
        get_target_property(deps ${lib} INTERFACE_LINK_LIBRARIES)
        if(deps)
          foreach(dep IN LISTS deps)
            string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" dep "${dep}")
            list(APPEND work ${dep})
          endforeach()
        endif()
      else()
        list(APPEND files ${lib})
      endif()
    else()
      list(APPEND files ${lib})
    endif()
  endwhile()
  set(${out} -Wl,--start-group ${files} -Wl,--end-group PARENT_SCOPE)
endfunction()

# The one link interface to MLIR and LLVM. QUERN_MLIR_ROOTS is the list of what
# Quern uses; the archives' own dependencies follow.
set(QUERN_MLIR_ROOTS
    MLIRAffineToStandard MLIRAffineDialect MLIRAffineTransforms MLIRAffineUtils MLIRArithDialect MLIRArithTransforms
    MLIRArithToLLVM MLIRBufferizationDialect MLIRBufferizationTransforms MLIRBuiltinToLLVMIRTranslation
    MLIRControlFlowDialect MLIRControlFlowToLLVM MLIRConvertToLLVMPass MLIRFuncDialect MLIRFuncToLLVM
    MLIRFuncTransforms MLIRFuncInlinerExtension MLIRGPUDialect MLIRGPUTransforms MLIRIndexToLLVM MLIRIR MLIRLLVMDialect
    MLIRLLVMToLLVMIRTranslation MLIRLinalgDialect MLIRLinalgTransforms MLIRLspServerLib MLIRMathDialect
    MLIRMathToLLVM MLIRMathToLibm MLIRMathTransforms MLIRMemRefDialect MLIRMemRefToLLVM MLIRMemRefTransforms
    MLIROptLib MLIRParser MLIRPass MLIRReconcileUnrealizedCasts MLIRSCFDialect MLIRSCFToControlFlow
    MLIRSCFTransforms MLIRTargetLLVMIRExport MLIRTensorDialect MLIRTensorTransforms MLIRTransforms
    MLIRUBDialect MLIRUBToLLVM MLIRVectorDialect MLIRVectorToLLVM MLIRVectorToLLVMPass
    MLIRVectorToSCF MLIRVectorTransforms MLIRDLTIDialect)
add_library(QuernMLIR INTERFACE)
target_link_libraries(QuernMLIR INTERFACE QuernOptions)
if(QUERN_SHARED_LLVM)
  target_link_libraries(QuernMLIR INTERFACE MLIR LLVM)
else()
  llvm_map_components_to_libnames(QUERN_LLVM_ROOTS core support orcjit passes x86codegen x86asmparser
                                  x86desc x86info target targetparser analysis irreader bitwriter supportlsp lto dtlto option)
  quern_static_closure(QUERN_LLVM_FILES ${QUERN_MLIR_ROOTS} ${QUERN_LLVM_ROOTS})
  target_link_libraries(QuernMLIR INTERFACE ${QUERN_LLVM_FILES})
endif()

# One precompiled header for everything that uses MLIR.
add_library(QuernPch STATIC ${CMAKE_SOURCE_DIR}/cmake/Pch.cpp)
target_link_libraries(QuernPch PUBLIC QuernOptions)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  target_compile_options(QuernPch PRIVATE -fpch-instantiate-templates)
  target_precompile_headers(QuernPch PRIVATE ${CMAKE_SOURCE_DIR}/cmake/Pch.h)
  file(SHA256 ${CMAKE_SOURCE_DIR}/cmake/Pch.h sum)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/CMakeFiles/QuernPch.dir/cmake_pch.hxx.pch.sum
       CONTENT "${sum} ${LLVM_VERSION} ${CMAKE_CXX_COMPILER_VERSION}")
endif()

# quern_subdirectories(): every folder here that has a CMakeLists.txt. The tree is the list.
function(quern_subdirectories)
  file(GLOB lists CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} */CMakeLists.txt)
  foreach(list IN LISTS lists)
    get_filename_component(dir ${list} DIRECTORY)
    if(NOT dir STREQUAL quern-tblgen)
      add_subdirectory(${dir})
    endif()
  endforeach()
endfunction()

# quern_library(NAME [NO_PCH] [SOURCES file...] [DEPENDS target...] [LINK lib...])
# An archive of the folder's *.cpp, or of SOURCES. NO_PCH: it uses no MLIR header.
# LINK orders and names what it needs; the MLIR archives are linked by the programs.
function(quern_library name)
  cmake_parse_arguments(ARG "NO_PCH" "" "SOURCES;DEPENDS;LINK" ${ARGN})
  if(NOT ARG_SOURCES)
    file(GLOB ARG_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  endif()
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC QuernOptions ${ARG_LINK})
  if(NOT ARG_NO_PCH)
    if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
      target_compile_options(${name} PRIVATE -fpch-instantiate-templates)
      target_precompile_headers(${name} REUSE_FROM QuernPch)
    endif()
    add_dependencies(${name} QuernTablegen)
  endif()
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# quern_runtime_library(NAME source): code that runs without LLVM and without the C++
# library, in one translation unit. NAME is an archive for programs; NAMEObject is the
# same code with weak symbols, whose object file quern-compile carries for artefacts.
function(quern_runtime_library name source)
  add_library(${name} STATIC ${source})
  add_library(${name}Object OBJECT ${source})
  foreach(target ${name} ${name}Object)
    target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR}/include)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wno-unused-parameter -fno-exceptions
        -fno-rtti -fno-threadsafe-statics -fvisibility=hidden -ffunction-sections -fdata-sections
        $<$<BOOL:${QUERN_WERROR}>:-Werror>)
  endforeach()
  target_compile_definitions(${name}Object PRIVATE QUERN_RT_WEAK)
  set_property(GLOBAL APPEND PROPERTY QUERN_RUNTIME_OBJECTS ${name})
  find_package(Threads REQUIRED)
  target_link_libraries(${name} PUBLIC Threads::Threads ${CMAKE_DL_LIBS})
  if(QUERN_SANITIZE)
    target_compile_options(${name} PRIVATE -fsanitize=address,undefined -fno-sanitize=vptr,function
                                           -fno-omit-frame-pointer)
  endif()
endfunction()

# quern_embed(OUT name file…): files as an initializer list of {name, text} pairs, in the
# build folder, for `#include "OUT"`.
function(quern_embed out)
  set(files ${ARGN})
  set(paths)
  while(files)
    list(POP_FRONT files name path)
    list(APPEND paths ${path})
  endwhile()
  string(REPLACE ";" "|" list "${ARGN}")
  add_custom_command(OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${out}
                     COMMAND ${CMAKE_COMMAND} -DOUT=${CMAKE_CURRENT_BINARY_DIR}/${out}
                             "-DFILES=${list}" -P ${CMAKE_SOURCE_DIR}/cmake/Embed.cmake
                     DEPENDS ${paths} ${CMAKE_SOURCE_DIR}/cmake/Embed.cmake VERBATIM)
endfunction()

# quern_tool(NAME SOURCES... [LINK lib...]): a program over the compiler's libraries.
function(quern_tool name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    # -fPIC as in the libraries: the precompiled header is not shared with -fPIE.
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${name} PRIVATE -fPIC -fpch-instantiate-templates)
    target_precompile_headers(${name} REUSE_FROM QuernPch)
  endif()
  add_dependencies(${name} QuernTablegen)
  target_link_libraries(${name} PRIVATE ${ARG_LINK} QuernMLIR)
  if(QUERN_SANITIZE)
    target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/Sanitizers.cpp)
  endif()
endfunction()

# quern_unittest(NAME [SOURCES file...] [LINK lib...]): a GoogleTest program, run by lit.
find_package(GTest)
function(quern_unittest name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  if(NOT ARG_SOURCES)
    file(GLOB ARG_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  endif()
  quern_tool(${name} SOURCES ${ARG_SOURCES} LINK ${ARG_LINK} GTest::gtest GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unittests)
  set_property(GLOBAL APPEND PROPERTY QUERN_UNITTESTS ${name})
endfunction()

# quern_tblgen(OUT option...): a file that quern-tblgen makes of all op records.
function(quern_tblgen out)
  set(source ${CMAKE_SOURCE_DIR}/include/quern/Dialect/Quern/IR)
  set(all ${CMAKE_BINARY_DIR}/include/quern/Dialect/Quern/IR/QuernOps.td)
  file(GLOB tds CONFIGURE_DEPENDS ${source}/Ops/*.td)
  file(RELATIVE_PATH name ${CMAKE_BINARY_DIR} ${out})
  add_custom_command(
    OUTPUT ${out}
    COMMAND quern-tblgen ${ARGN} -I ${CMAKE_SOURCE_DIR}/include -I ${LLVM_INCLUDE_DIR} ${all}
            --write-if-changed -o ${out}
    DEPENDS quern-tblgen ${tds} ${source}/StructuredOp.td ${all}
    COMMENT "Generating ${name}")
endfunction()

# quern_tablegen_target(NAME): ends a list of mlir_tablegen() calls.
function(quern_tablegen_target name)
  add_custom_target(${name} DEPENDS ${TABLEGEN_OUTPUT})
  set_property(GLOBAL APPEND PROPERTY QUERN_TABLEGEN_TARGETS ${name})
endfunction()
