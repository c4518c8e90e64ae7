// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/models/mae/config.h"
#include "vitrail/tensor/param_source.h"

namespace vitrail::models {

// The table of nn::sincos_positions_2d(), with zeros for the tokens in front of the patches.
Initializer fixed_positions(std::array<int64_t, 2> grid);

// The random initialisation of masked autoencoders, as the authors' code has it: matrices Xavier uniform, also the
// patch embedding's as a linear layer; tokens N(0, 0.02²); positions fixed_positions().  Other
// parameters begin as the layers say.
class MaeInitialParams : public ParamProvider {
 public:
  // others: random parameters, which draw by the initialisers that they are given.
  MaeInitialParams(const MaskedAutoencoderConfig& config, ParamProvider& others);
  Tensor get(const std::string& path, const Shape& shape, const Initializer& init) override;
  bool has(const std::string& path) const override { return others_.has(path); }
  void finish() override { others_.finish(); }

 private:
  std::array<int64_t, 2> grid_;
  ParamProvider& others_;
};

}  // namespace vitrail::models
