// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/shell/version_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <link.h>

#include <algorithm>
#include <filesystem>

#include "vitrail/kernels/isa/isa.h"

namespace vitrail::app {
namespace {

extern "C" int add_library_name(dl_phdr_info* info, size_t, void* names) {
  std::error_code unknown;
  const std::filesystem::path file = std::filesystem::canonical(info->dlpi_name, unknown);
  if (!file.empty()) static_cast<std::vector<std::string>*>(names)->push_back(file.filename().string());
  return 0;
}

}  // namespace

std::vector<std::string> loaded_libraries() {
  std::vector<std::string> names;
  ::dl_iterate_phdr(add_library_name, &names);
  std::sort(names.begin(), names.end());
  return names;
}

std::string instruction_set_text() {
  std::vector<std::string> names;
  for (const kernels::Isa isa : kernels::available_isas()) names.emplace_back(kernels::name_of(isa));
  return fmt::format("{} (of {})", kernels::name_of(kernels::active_isa()), fmt::join(names, ", "));
}

std::string version_text() {
  return fmt::format("vitrail " VITRAIL_VERSION
                     "\ninstruction set: {}\nlibraries: {}\nlicence: Apache-2.0 (vitrail --license)",
                     instruction_set_text(), fmt::join(loaded_libraries(), ", "));
}

}  // namespace vitrail::app
