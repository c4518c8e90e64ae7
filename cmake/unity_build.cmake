# SPDX-License-Identifier: Apache-2.0
# With CMAKE_UNITY_BUILD, as in most presets, several files of a target are compiled together, which takes less than
# half the time.  Hence the names in the anonymous namespaces of a folder's files differ.
#
# Each kernel is compiled once for each instruction set, which includes its file again.
file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/vitrail/kernels/*.cpp)
set_property(SOURCE ${kernels} DIRECTORY ${PROJECT_SOURCE_DIR}/vitrail PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)

# The library's translation units have files of one folder each, so that a new file changes none of another folder.
set(batch_size 24)
if(CMAKE_UNITY_BUILD_BATCH_SIZE)
  set(batch_size ${CMAKE_UNITY_BUILD_BATCH_SIZE})
endif()
get_target_property(sources vitrail_lib SOURCES)
set_target_properties(vitrail_lib PROPERTIES UNITY_BUILD_MODE GROUP)
foreach(source IN LISTS sources)
  file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR}/vitrail ${source})
  string(REGEX REPLACE "/.*" "" folder "${path}")
  math(EXPR batch "0${files_of_${folder}} / ${batch_size}")
  math(EXPR files_of_${folder} "0${files_of_${folder}} + 1")
  set_property(SOURCE ${source} DIRECTORY ${PROJECT_SOURCE_DIR}/vitrail PROPERTY UNITY_GROUP ${folder}_${batch})
endforeach()
