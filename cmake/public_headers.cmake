# SPDX-License-Identifier: Apache-2.0
# The public headers: those below, and all that they include.  They are collected at each installation, so that none is
# missing.
#   cmake -P cmake/public_headers.cmake     lists them
cmake_policy(VERSION 3.25)
get_filename_component(root ${CMAKE_CURRENT_LIST_DIR}/.. ABSOLUTE)

# What programs call; then what layers, operations, optimizers, tasks and objectives of other projects need.
set(pending vitrail/vitrail.h vitrail/c_api.h vitrail/image/encode.h vitrail/weights/safetensors.h)
list(APPEND pending vitrail/base/parallel.h vitrail/train/objectives/objective.h)
foreach(folder nn ops optim autograd tasks)
  file(GLOB_RECURSE headers RELATIVE ${root} ${root}/vitrail/${folder}/*.h)
  list(FILTER headers EXCLUDE REGEX "_internal[.]h$|-inl[.]h$")
  list(APPEND pending ${headers})
endforeach()

set(public_headers "")
while(pending)
  list(POP_FRONT pending header)
  if(NOT header IN_LIST public_headers)
    list(APPEND public_headers ${header})
    file(STRINGS ${root}/${header} includes REGEX "^#include \"vitrail/" ENCODING UTF-8)
    list(TRANSFORM includes REPLACE "^#include \"([^\"]+)\".*$" "\\1")
    list(APPEND pending ${includes})
  endif()
endwhile()
list(SORT public_headers)

if(include_folder)  # as a part of an installation
  foreach(header IN LISTS public_headers)
    get_filename_component(folder ${header} DIRECTORY)
    file(INSTALL ${root}/${header} DESTINATION ${include_folder}/${folder})
  endforeach()
else()
  foreach(header IN LISTS public_headers)
    message(${header})
  endforeach()
endif()
