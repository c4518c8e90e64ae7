// SPDX-License-Identifier: Apache-2.0
#include "tests/support/models.h"

#include <algorithm>
#include <stdexcept>

#include "tests/support/golden.h"
#include "tests/support/paths.h"

namespace vitrail::testing {
namespace fs = std::filesystem;

std::vector<std::string> model_fixtures() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(fixture("models"))) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The fixtures were computed in double; PyTorch's f32 has an error of at most 1.3e-6 on them.  A norm behind a branch
// (EVA-CLIP's enormous model) divides by the small deviation of the branch, and its rounding errors with it.
double parity_tolerance(const std::string& name) { return name == "timm_eva02_clip_enormous" ? 4e-5 : 1e-5; }

fs::path model_fixture(const std::string& name) {
  const fs::path folder = fixture("models/" + name);
  for (const char* file :
       {"model.safetensors", "model.pth", "model_legacy.pth", "model.npz", "open_clip_model.safetensors"}) {
    if (fs::exists(folder / file)) return folder / file;
  }
  throw std::runtime_error("no weights in " + folder.string());
}

models::VisionTransformer model_of(const std::string& name) {
  return models::build_model(models::open_model(model_fixture(name)));
}

models::VisionTransformer model_of(const std::string& name, const Tensor& images) {
  return models::build_model(models::open_model(model_fixture(name), options_for(images)));
}

models::VisionTransformer writable_model_of(const std::string& name) {
  models::VisionTransformer model = model_of(name);
  model.requires_grad(true);  // makes parameters that are a mapped file's writable
  model.requires_grad(false);
  return model;
}

Tensor input_of(const std::string& name) {
  return read_golden(model_fixture(name).parent_path() / "golden.safetensors")["input"];
}

models::LoadOptions options_for(const Tensor& images) {
  models::LoadOptions options;
  options.image_size = {images.size(2), images.size(3)};
  return options;
}

std::string test_name(const std::string& name) {
  std::string result = name;
  std::replace_if(
      result.begin(), result.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return result;
}

}  // namespace vitrail::testing
