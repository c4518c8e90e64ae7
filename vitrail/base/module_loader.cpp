// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <filesystem>
#include <vector>

#include "vitrail/base/env_internal.h"
#include "vitrail/base/error.h"
#include "vitrail/base/installation_internal.h"
#include "vitrail/base/module_loader_internal.h"
#include "vitrail/base/text.h"

namespace vitrail {
namespace fs = std::filesystem;
namespace {

std::vector<fs::path> module_folders() {
  if (const auto folder = environment("VITRAIL_MODULES")) return {*folder};
  const fs::path program = program_folder();
  std::vector<fs::path> folders{program, program.parent_path()};
  for (const fs::path& prefix : installation_prefixes()) folders.push_back(prefix / VITRAIL_LIBRARY_FOLDER / "vitrail");
  folders.push_back(fs::path(VITRAIL_LIBRARY_PATH) / "vitrail");
  return folders;
}

}  // namespace

void* load_module(const ModuleRequest& request) {
  const std::vector<fs::path> folders = module_folders();
  for (const fs::path& folder : folders) {
    const fs::path path = folder / request.file;
    std::error_code unknown;
    if (!fs::exists(path, unknown)) continue;
    void* const handle = ::dlopen(path.c_str(), RTLD_NOW | (request.global ? RTLD_GLOBAL : RTLD_LOCAL));
    void* const entry = handle ? ::dlsym(handle, request.entry.c_str()) : nullptr;
    if (!entry) throw Error(request.where, "a module that loads", std::string(::dlerror()));
    return entry;
  }
  throw Error(request.where,
              str("the module ", request.file, " in ",
                  join(folders, ", ", [](const fs::path& folder) { return folder.string(); }),
                  " (VITRAIL_MODULES names another folder; it is built ", request.built, ")"),
              "none");
}

}  // namespace vitrail
