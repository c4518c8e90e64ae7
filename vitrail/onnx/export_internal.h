// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the exports share.
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/models/load.h"
#include "vitrail/models/preprocessing.h"
#include "vitrail/onnx/export.h"
#include "vitrail/onnx/graph_builder_internal.h"
#include "vitrail/ops/recorder.h"

namespace vitrail::onnx {

using Metadata = std::vector<std::pair<std::string, std::string>>;

void check(const OnnxOptions& options);  // throws Error for an opset out of range

// Parameters are found by their storage.
std::map<const Storage*, std::string> parameter_names(const nn::Module& model);

// Pixels [N, H, W, C], u8 → (pixel · rescale − mean) / std [N, C, H, W].  Throws Error without mean and std.
std::string normalised_pixels(GraphBuilder& graph, const std::string& pixels, const models::Preprocessing& from,
                              int64_t channels);

PendingFiles write_model(const GraphBuilder& graph, const std::filesystem::path& path, const Metadata& metadata,
                         const OnnxOptions& options);

// The files of export_onnx() and export_text_onnx().
PendingFiles write_image_model(const models::VisionTransformer& model, const models::ModelConfig& config,
                               const std::filesystem::path& path, const OnnxOptions& options);
PendingFiles write_text_tower(const models::TextTower& tower, const std::filesystem::path& path,
                              const OnnxOptions& options);

// Moves the files of `more` behind those of `files`.
void append(PendingFiles& files, PendingFiles more);

}  // namespace vitrail::onnx
