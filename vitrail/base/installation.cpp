// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/installation_internal.h"

#include <dlfcn.h>

namespace vitrail {
namespace fs = std::filesystem;
namespace {

// The file that the loader mapped this code from; empty if unknown.  In a static build this is the program.
fs::path own_file() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&own_file), &info) == 0 || !info.dli_fname) return {};
  std::error_code unknown;
  return fs::canonical(info.dli_fname, unknown);
}

}  // namespace

fs::path program_folder() {
  std::error_code unknown;
  return fs::read_symlink("/proc/self/exe", unknown).parent_path();
}

std::vector<fs::path> installation_prefixes() {
  std::vector<fs::path> prefixes;
  const fs::path program = program_folder(), library = own_file().parent_path();
  if (!program.empty()) prefixes.push_back(program.parent_path());
  if (library.empty() || library == program) return prefixes;
  fs::path prefix = library;
  for ([[maybe_unused]] const fs::path& part : fs::path(VITRAIL_LIBRARY_FOLDER)) prefix = prefix.parent_path();
  prefixes.push_back(prefix);
  return prefixes;
}

}  // namespace vitrail
