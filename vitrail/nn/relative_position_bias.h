// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/nn/module.h"

namespace vitrail::nn {

// How a table is resampled to another grid.  geometric: linear interpolation between positions whose distances from the
// centre grow geometrically (timm, after the code of BEiT's authors).  bilinear: without antialiasing (transformers).
enum class RelativePositionResampling : uint8_t { geometric, bilinear };

struct RelativePositionBiasConfig {
  std::array<int64_t, 2> grid{};  // rows and columns of the patches that the table is for
  int64_t num_heads = 0;
  RelativePositionResampling resampling = RelativePositionResampling::geometric;
};

// The bias of the attention scores by the distance of two patches (Shaw et al. 2018; Bao et al. 2022, BEiT).  The bias
// of patch (y, x) for patch (v, u) of an h × w grid is row (y − v + h − 1)·(2w − 1) + (x − u + w − 1) of the table. Its
// last three rows are those of the class token for patches, of patches for the class token, and of it for itself.
// Parameter: relative_position_bias_table [(2h − 1)·(2w − 1) + 3, H], as in timm.
class RelativePositionBias : public Module {
 public:
  RelativePositionBias(const RelativePositionBiasConfig& config, const ParamSource& params);
  // The bias for a grid of patches behind a class token, [1, H, 1 + N, 1 + N].  Depends only on the parameter, so that
  // it is a constant of a compiled program.
  Tensor forward(std::array<int64_t, 2> grid) const;

  std::string type() const override { return "RelativePositionBias"; }
  void visit(Visitor& visitor) override;

 private:
  RelativePositionBiasConfig config_;
  Tensor table_;
};

}  // namespace vitrail::nn
