# SPDX-License-Identifier: Apache-2.0
# The MPI module, which is loaded when a run has several processes, so that the library and the program do not link MPI.
# Without MPI's development files (Debian: libopenmpi-dev) it is not built, and a run of several processes is an error.
if(VITRAIL_MPI)
  set(MPI_CXX_SKIP_MPICXX TRUE)  # only the C interface is used
  find_package(MPI QUIET COMPONENTS CXX)
  if(MPI_CXX_FOUND)
    vitrail_add_module(vitrail_mpi mpi dist/mpi_module.cpp)
    target_link_libraries(vitrail_mpi PRIVATE MPI::MPI_CXX Threads::Threads)
  else()
    message(STATUS "MPI was not found: without the module vitrail_mpi, training runs in one process")
  endif()
endif()
