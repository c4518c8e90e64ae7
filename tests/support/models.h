// SPDX-License-Identifier: Apache-2.0
#pragma once
// The model fixtures: one folder per model under tests/fixtures/models.
#include <filesystem>
#include <string>
#include <vector>

#include "vitrail/models/load.h"

namespace vitrail::testing {

std::vector<std::string> model_fixtures();  // sorted names
// The difference from the reference, absolute and relative, that f32 and another order of summation explain.  It is
// below the effect of any wrong option (tools/golden/README.md).
double parity_tolerance(const std::string& name);
std::filesystem::path model_fixture(const std::string& name);  // path of the weights file, in any format
models::VisionTransformer model_of(const std::string& name);
models::VisionTransformer model_of(const std::string& name, const Tensor& images);  // at the size of these images
models::VisionTransformer writable_model_of(const std::string& name);  // none of its parameters is a mapped file's
Tensor input_of(const std::string& name);                              // "input" of the fixture's golden.safetensors
models::LoadOptions options_for(const Tensor& images);                 // loads a model at the size of these images
std::string test_name(const std::string& name);                        // a valid name for INSTANTIATE_TEST_SUITE_P

}  // namespace vitrail::testing
