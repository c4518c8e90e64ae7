// SPDX-License-Identifier: Apache-2.0
#include "vitrail/quantize/network_calibration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/support/golden.h"
#include "tests/support/paths.h"
#include "vitrail/models/dense/outer_layers.h"
#include "vitrail/models/depth/depth_estimator.h"
#include "vitrail/models/rf_detr/rf_detr.h"
#include "vitrail/ops/tokens.h"
#include "vitrail/quantize/rounding.h"

namespace vitrail::quantize {
namespace {

using infer::NamedTensors;

models::DepthEstimator estimator() {
  models::DepthEstimator model = models::load_depth_estimator(
      models::open_depth_estimator(testing::fixture("depth/relative/config.json").parent_path()));
  model.requires_grad(true);  // parameters that may be written to
  model.requires_grad(false);
  return model;
}

infer::Function forward_of(const models::DepthEstimator& model) {
  return [&model](const NamedTensors& in) -> NamedTensors { return {{"depth", model.forward(in[0].tensor)}}; };
}

CalibrationInputs noise() {
  const auto image = [](uint64_t seed) { return NamedTensors{{"images", Tensor::randn({1, 3, 98, 98}, seed)}}; };
  return {.calibration = {image(1), image(2)}, .validation = {image(3)}};
}

// A channel of 50 times the range in front of each qkv, which the weight takes back.
void add_outliers(const models::DepthEstimator& model) {
  for (int64_t block = 0; block < model.config().backbone.depth; ++block) {
    const std::string path = "backbone.blocks." + std::to_string(block);
    for (const char* name : {".norm1.weight", ".norm1.bias"}) model.parameter(path + name).data<float>()[3] *= 50;
    const Tensor qkv = model.parameter(path + ".attn.qkv.weight");
    for (int64_t r = 0; r < qkv.size(0); ++r) qkv.data<float>()[r * qkv.size(1) + 3] /= 50;
  }
}

// ‖ŷ − y‖² with the given layers in int8, the others in fp32.
double int8_error(models::DepthEstimator& model, const std::vector<std::string>& layers) {
  const NamedTensors image = noise().validation[0];
  const infer::FunctionSession session(model, forward_of(model), {.int8_layers = layers, .retain_all = true});
  return testing::squared_error(session.run(image)[0].tensor, model.forward(image[0].tensor));
}

std::vector<std::string> qkv_layers(const nn::Module& model) {
  std::vector<std::string> layers = int8_layers(model);
  std::erase_if(layers, [](const std::string& layer) { return !layer.ends_with(".attn.qkv"); });
  return layers;
}

TEST(NetworkCalibration, KeepsTheFunctionOfTheNetwork) {
  models::DepthEstimator model = estimator();
  const Tensor image = noise().validation[0][0].tensor, before = model.forward(image),
               gamma = model.parameter("backbone.blocks.0.norm1.weight").clone();
  calibrate_network(model, forward_of(model), noise(), 1);
  EXPECT_TRUE(testing::close(model.forward(image), before, 1e-4, 1e-4));
  EXPECT_FALSE(testing::close(model.parameter("backbone.blocks.0.norm1.weight"), gamma, 1e-3));
}

TEST(NetworkCalibration, ReducesTheErrorThatOutlierChannelsCause) {
  models::DepthEstimator model = estimator();
  add_outliers(model);
  const std::vector<std::string> layers = qkv_layers(model);
  const double before = int8_error(model, layers);
  calibrate_network(model, forward_of(model), noise(), 1);
  EXPECT_LT(int8_error(model, layers), before / 16) << "of " << before;
}

// GPTQ chooses values for the network's output: with them, and int8 nowhere else, the map is nearer than with the
// nearest values.
TEST(NetworkCalibration, RoundsForTheOutput) {
  models::DepthEstimator model = estimator();
  const Int8Network calibrated = calibrate_network(model, forward_of(model), noise(), 1);
  const Tensor image = noise().validation[0][0].tensor, exact = model.forward(image);
  const auto error_with = [&](bool nearest) {
    for (const auto& [layer, weight] : calibrated.weights) {
      const Tensor parameter = model.parameter(layer + ".weight"), original = parameter.clone();
      parameter.copy_(dequantize(nearest ? to_int8(original) : weight));
    }
    return testing::squared_error(model.forward(image), exact);
  };
  std::map<std::string, Tensor> originals;
  for (const auto& [layer, weight] : calibrated.weights) originals[layer] = model.parameter(layer + ".weight").clone();
  const double gptq = error_with(false);
  for (const auto& [layer, original] : originals) model.parameter(layer + ".weight").copy_(original);
  EXPECT_LT(gptq, error_with(true));
}

// All layers of the blocks, the one that has no part in the map included: a block behind the last map.
TEST(NetworkCalibration, HasEveryLayerOnce) {
  models::DepthEstimator model = estimator();
  const std::vector<std::string> layers = int8_layers(model);
  EXPECT_EQ(layers.size(), static_cast<size_t>(4 * model.config().backbone.depth));
  for (const double tolerance : {1e-9, 0.02, 1.0}) {
    const Int8Network result = calibrate_network(model, forward_of(model), noise(), tolerance);
    std::set<std::string> all(result.excluded.begin(), result.excluded.end());
    EXPECT_EQ(all.size(), result.excluded.size());
    for (const auto& [layer, weight] : result.weights) EXPECT_TRUE(all.insert(layer).second) << layer;
    EXPECT_EQ(all, std::set<std::string>(layers.begin(), layers.end()));
    EXPECT_LE(result.excluded.size(), tolerance == 1.0 ? 0 : layers.size());
    EXPECT_GE(result.excluded.size(), tolerance == 1e-9 ? layers.size() - 4 : 0);
  }
}

// Sessions whose queries have another order each lose as little as those with one order.
TEST(NetworkCalibration, ComparesQueriesAsSets) {
  const auto excluded = [](bool turns, bool unordered) {
    models::RfDetr model =
        models::load_rf_detr(models::open_rf_detr(testing::fixture("rf_detr/windows/config.json").parent_path()));
    const int64_t side = model.config().side();
    int64_t calls = 0;
    const infer::Function forward = [&](const NamedTensors& in) -> NamedTensors {
      const models::RfDetrOutput output = model.forward(in[0].tensor);
      const int64_t queries = output.boxes.size(1), first = turns ? ++calls % queries : 0;
      const auto turned = [&](const Tensor& x) {
        return first == 0 ? x : ops::cat({x.narrow(1, first, queries - first), x.narrow(1, 0, first)}, 1);
      };
      return {{"logits", turned(output.logits)}, {"pred_boxes", turned(output.boxes)}};
    };
    const NamedTensors image{{"images", Tensor::randn({1, 3, side, side}, 1)}};
    return calibrate_network(model, forward, {{image}, {image}}, 0.05, unordered).excluded;
  };
  const std::vector<std::string> ordered = excluded(false, true);
  EXPECT_EQ(excluded(true, true), ordered);
  EXPECT_GT(excluded(true, false).size(), ordered.size());
}

// Windows of a detector are rows of tokens as those of an image.
TEST(NetworkCalibration, CalibratesWindows) {
  models::RfDetr model =
      models::load_rf_detr(models::open_rf_detr(testing::fixture("rf_detr/windows/config.json").parent_path()));
  const int64_t side = model.config().side();
  const infer::Function forward = [&](const NamedTensors& in) -> NamedTensors {
    const models::RfDetrOutput output = model.forward(in[0].tensor);
    return {{"logits", output.logits}, {"pred_boxes", output.boxes}};
  };
  const NamedTensors image{{"images", Tensor::randn({1, 3, side, side}, 1)}};
  const Tensor gamma = model.parameter("backbone.blocks.0.norm2.weight").clone();
  const Int8Network result = calibrate_network(model, forward, {{image}, {image}}, 1);
  EXPECT_EQ(result.weights.size(), int8_layers(model).size());
  EXPECT_FALSE(testing::close(model.parameter("backbone.blocks.0.norm2.weight"), gamma, 1e-3));
}

}  // namespace
}  // namespace vitrail::quantize
