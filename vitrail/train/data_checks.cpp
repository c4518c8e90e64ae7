// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/data_checks_internal.h"

#include "vitrail/base/error.h"
#include "vitrail/train/utf8_internal.h"

namespace vitrail::train {

void check_class_names(const std::vector<std::string>& classes, const std::string& where) {
  for (const std::string& name : classes) {
    if (!is_utf8(name))
      throw Error(where, "class names in UTF-8 (rename the folder)", "\"" + escape_non_utf8(name) + "\"");
  }
}

}  // namespace vitrail::train
