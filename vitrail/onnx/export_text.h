// SPDX-License-Identifier: Apache-2.0
#pragma once
// Export of the text tower of a dual model (CLIP, SigLIP) to ONNX.
#include <filesystem>

#include "vitrail/models/load.h"
#include "vitrail/onnx/export.h"

namespace vitrail::onnx {

// For "clip.onnx": "clip.text.onnx".
std::filesystem::path text_onnx_file(const std::filesystem::path& path);

// Writes the text tower in fp32 to text_onnx_file(path).  input_ids [N, context_length], i64, padded as the tokenizer
// pads → text_embeds [N, D], not normalised.  A text of a tokenizer with an end-of-text token must have that token.
// options.input is of image towers.  Metadata: logit_scale and logit_bias of models::TextTower.  Throws Error for
// options out of range, and if the file cannot be written.
void export_text_onnx(const models::TextTower& tower, const std::filesystem::path& path,
                      const OnnxOptions& options = {});

// Writes the files of export_onnx() and of export_text_onnx() together: if one cannot be written, there is neither.
void export_dual_onnx(const models::VisionTransformer& model, const models::ModelConfig& config,
                      const models::TextTower& tower, const std::filesystem::path& path,
                      const OnnxOptions& options = {});

}  // namespace vitrail::onnx
