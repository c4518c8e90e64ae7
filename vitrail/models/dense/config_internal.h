// SPDX-License-Identifier: Apache-2.0
#pragma once
// Readers of what transformers' config.json and preprocessor_config.json say of a DenseConfig and a DPT.  Absent fields
// have the defaults of its configuration classes.
#include "vitrail/models/dense/config.h"
#include "vitrail/models/json_fields_internal.h"

namespace vitrail::models {

int64_t positive_dim(const JsonFields& file, const char* key, int64_t preset);  // from 1 to 65,536

// The number of blocks before each feature map of a backbone of `depth` blocks: "stem" or 0 are the embeddings,
// "stage3" or 3 follow three blocks; −1 for another name.
std::vector<int64_t> feature_depths(const JsonFields& backbone, int64_t depth);

// The Vision Transformer without what is behind its blocks.
void read_dense_blocks(const Json& json, const std::string& where, DenseConfig& config);

// A backbone_config: DINOv2 with or without registers, or BEiT if `beit`.
void read_dense_backbone(const Json& json, const std::string& where, bool beit, DenseConfig& config);

// The backbone of a dpt, which may be its own ViT, and its neck without sizes.
void read_dpt_backbone(const JsonFields& file, DenseConfig& config, DptNeckConfig& neck);

// The sizes of a neck behind `config`.
void read_dpt_neck(const JsonFields& file, const DenseConfig& config, DptNeckConfig& neck);

// A DPTImageProcessor, or nothing for its class's values.
void read_dpt_processor(const std::string& text, const std::string& where, const JsonFields& model,
                        DenseConfig& config);

}  // namespace vitrail::models
