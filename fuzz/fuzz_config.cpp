// SPDX-License-Identifier: Apache-2.0
// Fuzzes the parser of config.json and preprocessor_config.json.  Every input must give a configuration or a
// vitrail::Error.
#include <cstddef>
#include <cstdint>
#include <string>

#include "vitrail/base/error.h"
#include "vitrail/models/hiera/classifier.h"
#include "vitrail/models/model_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const size_t split = text.find('\0');  // preprocessor_config.json follows the first zero byte
  const std::string config = text.substr(0, split);
  const std::string preprocessor = split == std::string::npos ? "" : text.substr(split + 1);
  try {
    const auto parsed = vitrail::models::parse_model_config(config, preprocessor, "fuzz");
    vitrail::models::parse_model_config(vitrail::models::write_model_config(parsed), "", "written");
  } catch (const vitrail::Error&) {
  }
  try {
    vitrail::models::read_hiera_config(config, "fuzz", preprocessor, "fuzz");
  } catch (const vitrail::Error&) {
  }
  return 0;
}
