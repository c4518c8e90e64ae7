// SPDX-License-Identifier: Apache-2.0
#pragma once
// The fixtures of tools/golden/sam.py: small models of Segment Anything with prompts and the reference's outputs.
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/golden.h"
#include "vitrail/image/image.h"
#include "vitrail/sam/prompt.h"

namespace vitrail::testing {

struct SamFixture {
  std::filesystem::path model;
  Golden golden;
  image::Image image;
  std::vector<sam::Prompt> prompts;
};

SamFixture sam_fixture(const std::string& name);

// Both are computed in fp32: a sum of n ≤ 2,304 products rounds to √n · 2⁻²⁴ = 3e-6 of its magnitude, over some ten
// layers in a row.
inline constexpr double kSamTolerance = 1e-4;

// The largest magnitude of an f32 tensor.
double largest(const Tensor& x);

}  // namespace vitrail::testing
