# SPDX-License-Identifier: Apache-2.0
# vitrail_add_module(NAME COMPONENT SOURCE…): a shared object that the library loads when it is used, so that nothing
# else links what the module links.
function(vitrail_add_module name component)
  add_library(${name} MODULE ${ARGN})
  # The program's own folder, which is searched first.
  set_target_properties(${name} PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
                                           CXX_VISIBILITY_PRESET hidden)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  if(VITRAIL_INSTALL)
    install(TARGETS ${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/vitrail COMPONENT ${component})
  endif()
endfunction()
