// SPDX-License-Identifier: Apache-2.0
#include "tests/support/sam_fixture.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/paths.h"

namespace vitrail::testing {

SamFixture sam_fixture(const std::string& name) {
  const std::filesystem::path folder = fixture("sam/" + name);
  SamFixture result{folder / "model.pth", read_golden(folder / "golden.safetensors"), {}, {}};
  if (!std::filesystem::exists(result.model)) result.model = folder / "model.safetensors";
  const Tensor pixels = result.golden["image"].contiguous();
  result.image = {pixels.size(1), pixels.size(0), 3, {}};
  result.image.pixels.assign(pixels.data<uint8_t>(), pixels.data<uint8_t>() + pixels.numel());
  const auto config = nlohmann::json::parse(result.golden.config);
  for (const auto& entry : config["prompts"]) {
    sam::Prompt prompt;
    for (const auto& point : entry.value("points", nlohmann::json::array())) {
      prompt.points.push_back({point[0], point[1], static_cast<int>(point[2].get<double>())});
    }
    if (entry.contains("box")) {
      prompt.box = sam::Box{entry["box"][0], entry["box"][1], entry["box"][2], entry["box"][3]};
    }
    const std::string mask = "mask_" + std::to_string(result.prompts.size());
    if (result.golden.has(mask)) prompt.mask_logits = result.golden[mask];
    prompt.multimask = entry["multimask"];
    result.prompts.push_back(prompt);
  }
  return result;
}

double largest(const Tensor& x) {
  const Tensor dense = x.contiguous();
  double value = 0;
  for (int64_t i = 0; i < dense.numel(); ++i) value = std::max<double>(value, std::abs(dense.data<float>()[i]));
  return value;
}

}  // namespace vitrail::testing
