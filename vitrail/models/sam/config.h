// SPDX-License-Identifier: Apache-2.0
#pragma once
// The configuration of Segment Anything, which a checkpoint's shapes determine.
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/hiera/config.h"
#include "vitrail/tensor/shape.h"

namespace vitrail::models {

// How an image becomes the input of the image encoder.
enum class SamPreprocessing : uint8_t {
  segment_anything,    // resized to its long side, normalised by the mean and std below, padded
  medsam,              // MedSAM (Ma et al. 2024): resized to a square, scaled from its range of values to 0–1
  segment_anything_2,  // SAM 2 (Ravi et al. 2024): resized to a square, normalised by the mean and std below
};

// The name in config.json and on the command line.  Throws Error naming `where` for another name.
const char* name_of(SamPreprocessing preprocessing);
SamPreprocessing sam_preprocessing_from_name(const std::string& name, const std::string& where);

// Images are normalised by the statistics of ImageNet's red, green and blue, times 255.
inline constexpr std::array kSamImageMean{123.675f, 116.28f, 103.53f}, kSamImageStd{58.395f, 57.12f, 57.375f};

// The ε of layer norms in segment_anything, and in the blocks of timm's samvit.
inline constexpr double kSamNormEps = 1e-6, kTimmSamNormEps = 1e-5;

// A block of the image encoder.
struct SamBlockConfig {
  int64_t window = 0;        // attention in windows of window × window cells; 0: of the whole grid
  int64_t table_length = 0;  // rows of rel_pos_h and rel_pos_w
};

// A stage of TinyViT.
struct SamTinyStage {
  int64_t dim = 0, depth = 0;
  int64_t hidden = 0;                 // width of its convolutions or MLPs
  int64_t num_heads = 1, window = 0;  // attention; the first stage has convolutions instead
  int64_t out_dim = 0, stride = 1;    // convolutions behind the blocks that merge patches; 0: none
};

struct SamEncoderConfig {
  int64_t grid = 64;  // rows and columns of patches
  int64_t patch_size = 16, in_chans = 3;
  int64_t dim = 768, num_heads = 12, head_dim = 64, mlp_hidden = 3072;
  bool qkv_bias = true;
  int64_t out_chans = 256;
  double norm_eps = kSamNormEps;  // ε of the blocks' layer norms
  std::vector<SamBlockConfig> blocks = {};
  // MobileSAM: TinyViT instead of the blocks above.
  int64_t stem = 32;
  std::vector<SamTinyStage> stages = {};
  // SAM 2: Hiera instead of the blocks above, whose patch_size is then that of a cell of the embedding.
  std::optional<HieraConfig> hiera = {};

  int64_t image_size() const { return grid * patch_size; }
};

// A single mask is mask 0 if it is stable, else that of the largest IoU among the others (sam2, mask_decoder.py,
// _dynamic_multimask_via_stability).
struct SamStability {
  double delta = 0.05;      // in logits: stability is the area above delta divided by the area above −delta
  double threshold = 0.98;  // The smallest stability of a stable mask.
};

struct SamDecoderConfig {
  int64_t dim = 256;  // also of prompts
  int64_t num_heads = 8;
  int64_t depth = 2, cross_dim = 128, mlp_hidden = 2048;  // the two-way transformer
  int64_t mask_tokens = 4;                                // for a single mask, and for three of different extent
  int64_t upscale_dims[2] = {64, 32};
  int64_t iou_hidden = 256;
  int64_t mask_chans[2] = {4, 16};  // the encoder of mask prompts
  bool high_quality = false;        // with the layers of HQ-SAM
  // SAM 2 alone has the following.
  bool object_score = false;     // a token in front of the others, and a head, say whether there is an object
  bool reads_fine_maps = false;  // the image's maps of strides 4 and 8 are added while masks are enlarged
  bool iou_sigmoid = false;      // predicted IoUs are in [0, 1]
  bool pads_boxes = false;       // a padding point follows the corners of a box too
  std::optional<SamStability> single_mask_stability = {};  // unset: a single mask is always mask 0
};

struct SamConfig {
  SamEncoderConfig encoder = {};
  SamDecoderConfig decoder = {};
  SamPreprocessing preprocessing = SamPreprocessing::segment_anything;
  bool has_decoder = true;  // false: an image encoder alone, as timm's samvit, which has embeddings and no masks

  int64_t mask_size() const { return 4 * encoder.grid; }  // sides of the decoder's masks
};

// What the shapes of a checkpoint do not show.
struct SamConfigDefaults {
  int64_t decoder_heads = 8;  // all published models have 8
  int64_t image_size = 1024;  // MobileSAM; a multiple of 16
  double norm_eps = kSamNormEps;
  std::optional<std::vector<int64_t>> global_blocks = {};  // unset: the blocks with tables for the whole grid
  SamPreprocessing preprocessing = SamPreprocessing::segment_anything;
  // SAM 2: what shapes do not show of the stages; unset: that of the published model with the shapes of the checkpoint.
  std::optional<HieraConfig> hiera = {};
  std::optional<SamStability> single_mask_stability = SamStability{};
};

// Reads the configuration from the shapes of a checkpoint under the official names.  A tensor that is missing or has
// another rank leaves a default, so that loading reports it with all others.  Throws Error naming `where` for a
// checkpoint without a mask decoder that has more than an image encoder of Segment Anything, and for shapes that no
// model has.
SamConfig sam_config(const std::map<std::string, Shape>& shapes, const std::string& where,
                     const SamConfigDefaults& defaults = {});

// The config.json of a folder: what sam_config() does not read from shapes.
std::string write_sam_config(const SamConfig& config);

}  // namespace vitrail::models
