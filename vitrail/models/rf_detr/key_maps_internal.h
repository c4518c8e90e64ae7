// SPDX-License-Identifier: Apache-2.0
#pragma once
// The names of tensors in files of RF-DETR and LW-DETR.
#include "vitrail/models/rf_detr/config.h"
#include "vitrail/weights/checkpoint.h"
#include "vitrail/weights/key_map.h"

namespace vitrail::models {

// Its name in files of the authors, and in those of vitrail.
inline constexpr const char* kRfDetrQueries = "query_feat.weight";

// The names that a file has: those of the authors, of transformers or of RfDetr's parameters.
weights::KeyMap rf_detr_key_map(const weights::Checkpoint& file, const RfDetrConfig& config);

}  // namespace vitrail::models
