// SPDX-License-Identifier: Apache-2.0
#pragma once
// Modules: shared objects beside the library that it loads when they are used, so that it does not link what they do.
#include <string>

namespace vitrail {

struct ModuleRequest {
  std::string where;    // names the module's purpose in errors: "mpi"
  std::string file;     // "vitrail_mpi.so"
  std::string entry;    // its exported function
  std::string built;    // when it is built, for the error: "where CMake finds MPI and VITRAIL_MPI is ON"
  bool global = false;  // its symbols are visible to modules that are loaded later
};

// Loads a module, which remains loaded, and returns the address of its entry.  Searched are the folder that
// VITRAIL_MODULES names, else the program's folder and its parent (a build tree), the installations of the program and
// of the shared library, and the installation that this library was built for.  Throws Error if there is no module.
void* load_module(const ModuleRequest& request);

}  // namespace vitrail
