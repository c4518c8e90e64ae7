# SPDX-License-Identifier: Apache-2.0
# The MPI module, which is loaded when a run has several processes, so that the library and the program do not link MPI.
# Without MPI's development files (Debian: libopenmpi-dev) it is not built, and a run of several processes is an error.
if(VITRAIL_MPI)
  set(MPI_CXX_SKIP_MPICXX TRUE)  # only the C interface is used
  find_package(MPI QUIET COMPONENTS CXX)
  if(MPI_CXX_FOUND)
    add_library(vitrail_mpi MODULE dist/mpi_module.cpp)
    # The program's own folder, which is searched first.
    set_target_properties(vitrail_mpi PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
                                                 CXX_VISIBILITY_PRESET hidden)
    target_include_directories(vitrail_mpi PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(vitrail_mpi PRIVATE MPI::MPI_CXX Threads::Threads)
    if(VITRAIL_INSTALL)
      install(TARGETS vitrail_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/vitrail COMPONENT mpi)
    endif()
  else()
    message(STATUS "MPI was not found: without the module vitrail_mpi, training runs in one process")
  endif()
endif()
