// SPDX-License-Identifier: Apache-2.0
#pragma once
// The model fixtures: one folder each under tests/fixtures/models.
#include <filesystem>
#include <string>
#include <vector>

#include "vitrail/models/load.h"

namespace vitrail::testing {

std::vector<std::string> model_fixtures();                     // their names, sorted
std::filesystem::path model_fixture(const std::string& name);  // the weights file inside, whatever its format
models::VisionTransformer model_of(const std::string& name);
models::VisionTransformer model_of(const std::string& name, const Tensor& images);  // at these images' size
Tensor input_of(const std::string& name);               // that its golden.safetensors begins with
models::LoadOptions options_for(const Tensor& images);  // to run the model at these images' size
std::string test_name(const std::string& name);         // for INSTANTIATE_TEST_SUITE_P

}  // namespace vitrail::testing
