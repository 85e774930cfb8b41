# find_package(Quern), then target_link_libraries(app PRIVATE Quern::quern).
include("${CMAKE_CURRENT_LIST_DIR}/QuernTargets.cmake")

# The interface speaks DLPack, whose header is not Quern's to install.
find_path(Quern_DLPACK_INCLUDE_DIR dlpack/dlpack.h)
mark_as_advanced(Quern_DLPACK_INCLUDE_DIR)
if(NOT Quern_DLPACK_INCLUDE_DIR)
  set(Quern_FOUND FALSE)
  set(Quern_NOT_FOUND_MESSAGE
      "dlpack/dlpack.h was not found: install libdlpack-dev or set Quern_DLPACK_INCLUDE_DIR")
  return()
endif()
target_include_directories(Quern::quern INTERFACE "${Quern_DLPACK_INCLUDE_DIR}")
