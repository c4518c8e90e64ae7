// SPDX-License-Identifier: Apache-2.0
// convert --dtype int8 with models that run by their tasks.
#include <cmath>

#include "tests/apps/cli_fixture.h"
#include "tests/apps/option_effects.h"
#include "tests/support/golden.h"
#include "vitrail/base/npy.h"
#include "vitrail/tasks/loaded_model.h"
#include "vitrail/weights/checkpoint.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

struct Int8Source {
  std::string folder;
  Arguments command;
};

const std::vector<Int8Source>& int8_sources() {
  static const std::vector<Int8Source> sources{{"depth/relative", {"depth"}},
                                               {"depth/dpt_beit", {"depth"}},
                                               {"depth/metric", {"depth"}},
                                               {"semantic/linear", {"segment"}},
                                               {"semantic/beit", {"segment"}},
                                               {"eomt/semantic", {"segment"}},
                                               {"yolos/mid", {"detect", "--threshold", "0"}},
                                               {"rf_detr/lw", {"detect", "--threshold", "0"}},
                                               {"vitpose/simple", {"pose"}}};
  return sources;
}

nlohmann::json config_of(const fs::path& folder) { return nlohmann::json::parse(content_of(folder / "config.json")); }

fs::path folder_of(const Int8Source& source) { return fixture(source.folder + "/config.json").parent_path(); }

std::vector<float> values_of(const Int8Source& source, const fs::path& model, const std::string& precision = "") {
  const fs::path out = scratch_folder();
  Arguments command = source.command + Arguments{noise_folder() / "a.png", "-m", model, "--arrays", out};
  if (!precision.empty()) command = command + Arguments{"--precision", precision};
  run(command);
  for (const auto& entry : fs::directory_iterator(out)) {
    const NpyArray array = read_npy(entry.path());
    if (!array.f32.empty()) return array.f32;
  }
  ADD_FAILURE() << source.folder << ": no array";
  return {};
}

// ‖got − want‖ / ‖want‖
double relative_difference(const std::vector<float>& got, const std::vector<float>& want) {
  EXPECT_EQ(got.size(), want.size());
  double difference = 0, norm = 0;
  for (size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
    difference += (double{got[i]} - want[i]) * (double{got[i]} - want[i]);
    norm += double{want[i]} * want[i];
  }
  return std::sqrt(difference / norm);
}

// Without calibration, weights are the nearest values; errors are then those of rounding at load.
TEST(ConvertNetworkInt8, AFolderIsTheModelInInt8) {
  for (const Int8Source& source : int8_sources()) {
    const fs::path folder = scratch_folder() / "int8";
    const ProgramResult result = run({"convert", folder_of(source), "-o", folder, "--dtype", "int8"});
    EXPECT_TRUE(contains(result.err, "\n0 of ")) << result.err;
    const std::vector<float> exact = values_of(source, folder_of(source)), stored = values_of(source, folder);
    const double at_load = relative_difference(values_of(source, folder_of(source), "int8"), exact);
    EXPECT_GT(relative_difference(stored, exact), 0) << source.folder;
    EXPECT_LT(relative_difference(stored, exact), 1.5 * at_load) << source.folder;
  }
}

TEST(ConvertNetworkInt8, WeightsAreTheNearestValues) {
  for (const Int8Source& source : int8_sources()) {
    const fs::path folder = scratch_folder() / "int8";
    run({"convert", folder_of(source), "-o", folder, "--dtype", "int8"});
    const auto file = weights::Checkpoint::open(folder / "model.safetensors");
    const auto model = tasks::open_model(folder_of(source));
    for (const std::string layer : {"attn.qkv", "attn.proj", "mlp.fc1", "mlp.fc2"}) {
      const std::string name = "backbone.blocks.1." + layer + ".weight";
      const Tensor weight = model->network()->module.parameter(name), values = file.tensor(name),
                   scales = file.tensor(name + "_scale");
      ASSERT_EQ(values.dtype(), DType::i8);
      ASSERT_EQ(values.shape(), weight.shape());
      for (int64_t i = 0; i < weight.numel(); ++i) {
        const float scale = scales.data<float>()[i / weight.size(1)];
        ASSERT_NEAR(scale * static_cast<float>(values.data<int8_t>()[i]), weight.data<float>()[i], 0.5001F * scale)
            << source.folder << " " << name;
      }
    }
  }
}

TEST(ConvertNetworkInt8, CalibratedFoldersRunAndConvertBack) {
  for (const Int8Source& source : int8_sources()) {
    const fs::path folder = scratch_folder(), int8 = folder / "int8", back = folder / "fp32";
    run({"convert", folder_of(source), "-o", int8, "--dtype", "int8", "--calibrate", noise_folder(), "--tolerance",
         "1"});
    EXPECT_TRUE(config_of(int8).at("int8").at("excluded").empty());
    EXPECT_EQ(values_of(source, int8), values_of(source, int8, "int8")) << source.folder;
    const std::vector<float> exact = values_of(source, folder_of(source));
    EXPECT_LT(relative_difference(values_of(source, int8, "fp32"), exact), 0.1) << source.folder;
    run({"convert", int8, "-o", back});
    EXPECT_FALSE(config_of(back).contains("int8"));
    EXPECT_EQ(values_of(source, back), values_of(source, int8, "fp32")) << source.folder;
    EXPECT_FALSE(weights::Checkpoint::open(back / "model.safetensors").has("backbone.blocks.0.mlp.fc1.weight_scale"));
  }
}

TEST(ConvertNetworkInt8, ExcludedLayersHave16Bits) {
  const fs::path folder = scratch_folder() / "int8";
  const Int8Source semantic{"semantic/linear", {"segment"}};
  const fs::path source = folder_of(semantic);
  run({"convert", source, "-o", folder, "--dtype", "int8", "--calibrate", noise_folder(), "--tolerance", "1e-9"});
  const nlohmann::json excluded = config_of(folder).at("int8").at("excluded");
  EXPECT_EQ(excluded.size(), 16U);
  const auto file = weights::Checkpoint::open(folder / "model.safetensors");
  for (const auto& layer : excluded) {
    const std::string name = layer.get<std::string>() + ".weight";
    EXPECT_EQ(size_of(file.info(name).dtype), 2U) << name;
    EXPECT_FALSE(file.has(name + "_scale")) << name;
  }
  // They are 16 bits in a session, too: the values are nearer than with all of them in int8.
  const std::vector<float> exact = values_of(semantic, source);
  EXPECT_LT(relative_difference(values_of(semantic, folder), exact),
            0.5 * relative_difference(values_of(semantic, source, "int8"), exact));
}

// The names outside the backbone are those of the source.
TEST(ConvertNetworkInt8, OtherTensorsStay) {
  const fs::path source = fixture("depth/relative/config.json").parent_path(), folder = scratch_folder() / "int8";
  run({"convert", source, "-o", folder, "--dtype", "int8"});
  const auto from = weights::Checkpoint::open(source / "model.safetensors"),
             to = weights::Checkpoint::open(folder / "model.safetensors");
  for (const std::string& name : from.names()) {
    ASSERT_EQ(to.has(name), !name.starts_with("backbone.")) << name;
    const bool equal = !to.has(name) || close(to.tensor(name), from.tensor(name), 0);
    EXPECT_TRUE(equal) << name;
  }
  EXPECT_EQ(content_of(folder / "preprocessor_config.json"), content_of(source / "preprocessor_config.json"));
}

TEST(ConvertNetworkInt8, WhatHasNoInt8FileIsRefused) {
  for (const auto& [model, output] :
       {std::pair{"owl/v2", "int8"}, {"clipseg/plain", "int8"}, {"vitpose/experts", "int8"}}) {
    const fs::path source = fixture(std::string(model) + "/config.json").parent_path();
    const ProgramResult result = run_program({"convert", source, "-o", scratch_folder() / output, "--dtype", "int8"});
    EXPECT_NE(result.status, 0) << model;
    EXPECT_TRUE(contains(result.err, "int8")) << result.err;
  }
}

}  // namespace
}  // namespace vitrail::testing
