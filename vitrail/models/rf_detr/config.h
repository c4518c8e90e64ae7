// SPDX-License-Identifier: Apache-2.0
#pragma once
// The configuration of RF-DETR and LW-DETR: a Vision Transformer with windows, projectors and a decoder of queries.
#include <optional>
#include <string>
#include <vector>

#include "vitrail/base/fields.h"
#include "vitrail/models/preprocessing.h"
#include "vitrail/models/vision_transformer_config.h"

namespace vitrail::models {

struct RfDetrBackboneConfig {
  // Its depth: the blocks up to the last map.  Positions have a row for a class token, also without one (LW-DETR).
  VisionTransformerConfig vit{};
  int64_t file_depth = 12;                 // the blocks in the file
  int64_t num_windows = 4;                 // along each side
  std::vector<bool> windowed{};            // for each block: whether windows attend to themselves alone
  std::vector<int64_t> maps{2, 5, 8, 11};  // the number of blocks before each map
  bool final_norm = true;                  // maps are normalised
};

struct RfDetrProjectorConfig {
  std::vector<double> scales{1};  // the sides of the decoder's maps, divided by those of the backbone's: 2, 1 or 0.5
  int64_t hidden = 128;           // channels of each of the joined maps
  int64_t blocks = 3;             // pairs of 3×3 convolutions
  kernels::Activation act = kernels::Activation::silu;
  bool batch_norm = false;  // behind convolutions is a batch normalisation (LW-DETR), not a LayerNorm over the channels
  double norm_eps = 1e-5;   // its ε
};

struct RfDetrDecoderConfig {
  int64_t depth = 3;
  int64_t self_heads = 8, cross_heads = 16;
  int64_t points = 4;  // that a head of a query reads in each map
  int64_t mlp_hidden = 2048;
  kernels::Activation act = kernels::Activation::relu;
};

struct RfDetrMaskConfig {
  int64_t downsampling = 4;  // the side of the input divided by that of a mask
  int64_t blocks = 3;
  int64_t mlp_hidden = 1024;
  kernels::Activation act = kernels::Activation::gelu;
};

struct RfDetrConfig {
  std::string architecture = "rf_detr";  // transformers' model_type
  RfDetrBackboneConfig backbone{};
  RfDetrProjectorConfig projector{};
  RfDetrDecoderConfig decoder{};
  std::optional<RfDetrMaskConfig> masks{};  // instance segmentation
  int64_t dim = 256;                        // width of the maps and of the queries
  int64_t num_queries = 300;
  int64_t groups = 1;  // groups of queries; more than one in training alone
  int64_t max_objects = 300;
  std::vector<std::string> labels{};  // the names of the classes, in index order
  Preprocessing preprocessing{};

  int64_t num_classes() const { return static_cast<int64_t>(labels.size()); }
  int64_t side() const { return (*preprocessing.resize_to)[0]; }  // side of the input, a square
  int64_t mask_side() const { return masks ? side() / masks->downsampling : 0; }
};

// Says which blocks of a backbone with these maps have windows: not those whose index is the number of blocks before a
// map.
std::vector<bool> windowed_blocks(int64_t depth, const std::vector<int64_t>& maps);

// "detection" in vitrail's own config.json: the projector, the decoder, the classes and the input's size.
void describe_detection(Fields& fields, RfDetrConfig& config);

// Reads config.json: vitrail's own, which is that of an image model with "detection" beside; or transformers' of an
// rf_detr or an lw_detr, with its preprocessor_config.json (empty: its defaults).  masks: of instance segmentation. The
// paths name the files in errors.
RfDetrConfig read_rf_detr_config(const std::string& config, const std::string& path, const std::string& preprocessor,
                                 const std::string& preprocessor_path, bool masks = false);

// vitrail's own config.json.  Its tensors are named as RfDetr's parameters.
std::string write_rf_detr_config(const RfDetrConfig& config);

}  // namespace vitrail::models
