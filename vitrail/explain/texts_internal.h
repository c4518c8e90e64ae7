// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json.hpp>

#include "vitrail/explain/explain.h"

namespace vitrail::explain {

// The member `texts` of the manifest.
nlohmann::ordered_json texts_json(const ComparedTexts& compared);

}  // namespace vitrail::explain
