// SPDX-License-Identifier: Apache-2.0
// OWLv2 and OWL-ViT against transformers', and the task detect with labels and examples: fixtures of
// tools/golden/owl.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/read_file.h"
#include "vitrail/image/encode.h"
#include "vitrail/tasks/item_files.h"
#include "vitrail/tasks/open_detect/owl_model.h"
#include "vitrail/tasks/run.h"

namespace vitrail::tasks {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::error_of;

const std::vector<std::string> kOwlLabels{"a cat", "two dogs", "grass"};
constexpr const char* kAllLabels = "a cat,two dogs,grass";

fs::path owl_folder(const std::string& name) { return testing::fixture("owl/" + name + "/config.json").parent_path(); }

testing::Golden owl_golden(const std::string& name) {
  return testing::read_golden(owl_folder(name) / "golden.safetensors");
}

image::Image owl_image(int index) {
  static const testing::Golden images = testing::read_golden(testing::fixture("depth/images.safetensors"));
  const Tensor& pixels = images["image_" + std::to_string(index)];
  image::Image image = image::make_image(pixels.size(1), pixels.size(0), 3);
  std::memcpy(image.pixels.data(), pixels.raw(), image.pixels.size());
  return image;
}

std::string example_of(const image::Image& image) {
  const std::vector<uint8_t> bytes = image::encode_png(image);
  return {bytes.begin(), bytes.end()};
}

double largest_owl_value(const Tensor& tensor) {
  double result = 0;
  for (const float value : std::span(tensor.data<float>(), static_cast<size_t>(tensor.numel())))
    result = std::max(result, std::abs(static_cast<double>(value)));
  return result;
}

// The result of the task for images, each with the example at its index if there are some.
std::vector<json> objects_of(const LoadedModel& model, const Parameters& given,
                             const std::vector<std::string>& examples = {}, int images = 1) {
  const Task& task = *find_task("detect", model);
  RequestOptions options;
  options.add(given);
  for (const std::string& example : examples) options.add("like", example);
  const ItemFiles files(task, options);
  const auto request = task.request(model, options, {.model = "m", .input_files = files.names()});
  options.require_all_taken();
  request->check(images);
  std::vector<Item> items(static_cast<size_t>(images));
  for (int i = 0; i < images; ++i) {
    Item& item = items[static_cast<size_t>(i)];
    item.name = str("image ", i);
    item.photo = owl_image(i);
    item.input_files = files.of(static_cast<size_t>(i), static_cast<size_t>(images));
  }
  run(model, *request, items);
  std::vector<json> results;
  for (const Item& item : items) results.push_back(json::parse(request->json(item))["detections"]);
  return results;
}

void expect_objects(const json& found, const Tensor& scores, const Tensor& boxes) {
  ASSERT_EQ(std::ssize(found), scores.numel());
  for (size_t k = 0; k < found.size(); ++k) {
    EXPECT_NEAR(found[k]["score"].get<float>(), scores.data<float>()[k], 2e-5) << k;
    for (size_t side = 0; side < 4; ++side)
      EXPECT_NEAR(found[k]["box"][side].get<float>(), boxes.data<float>()[4 * k + side], 0.01) << k;
  }
}

class OwlParity : public ::testing::TestWithParam<std::string> {};

TEST_P(OwlParity, InputsAndOutputsEqualTheReference) {
  const testing::Golden golden = owl_golden(GetParam());
  const OwlModel model(owl_folder(GetParam()), {});
  const Tensor queries = model.embed_labels(kOwlLabels, {});
  for (int i = 0; i < 2; ++i) {
    const Tensor pixels = model.network()->inputs_of(owl_image(i))[0].tensor.squeeze(0);
    const Tensor& thinned = golden[str("pixels_", i)];
    ASSERT_EQ(thinned.size(1), (pixels.size(1) + 2) / 3);
    for (int64_t at = 0; at < thinned.numel(); ++at) {
      const int64_t side = thinned.size(2), c = at / (side * side), y = at / side % side, x = at % side;
      EXPECT_NEAR(thinned.data<float>()[at],
                  pixels.data<float>()[(c * pixels.size(1) + 3 * y) * pixels.size(2) + 3 * x], 1e-5)
          << i << ": " << c << ", " << y << ", " << x;
    }
    const auto encoded = model.encode(owl_image(i));
    const models::OwlOutput& patches = static_cast<const OwlEncoding&>(*encoded).patches;
    const Tensor& logits = golden[str("logits_", i)];
    const Tensor got = models::owl_logits(patches, queries.unsqueeze(0)).squeeze(0);
    EXPECT_TRUE(testing::close(got, logits, 2e-5 * largest_owl_value(logits))) << i;
    EXPECT_TRUE(testing::close(patches.boxes.squeeze(0), golden[str("boxes_", i)], 1e-5)) << i;
    ASSERT_EQ(patches.objectness.defined(), GetParam() == "v2");
    if (patches.objectness.defined()) {
      const Tensor& objectness = golden[str("objectness_", i)];
      EXPECT_TRUE(testing::close(patches.objectness.squeeze(0), objectness, 2e-5 * largest_owl_value(objectness))) << i;
    }
  }
}

TEST_P(OwlParity, ObjectsOfLabelsEqualTheReference) {
  const testing::Golden golden = owl_golden(GetParam());
  const OwlModel model(owl_folder(GetParam()), {});
  const std::vector<json> found = objects_of(model, {{"labels", kAllLabels}}, {}, 2);
  for (size_t i = 0; i < 2; ++i) {
    expect_objects(found[i], golden[str("scores_", i)], golden[str("found_", i)]);
    const Tensor& labels = golden[str("labels_", i)];
    for (size_t k = 0; k < found[i].size(); ++k) {
      const auto index = static_cast<size_t>(labels.data<float>()[k]);
      EXPECT_EQ(found[i][k]["index"], index);
      EXPECT_EQ(found[i][k]["label"], kOwlLabels[index]);
    }
  }
}

// The example of an image is the other one.
TEST_P(OwlParity, ObjectsLikeAnExampleEqualTheReference) {
  const testing::Golden golden = owl_golden(GetParam());
  const OwlModel model(owl_folder(GetParam()), {});
  const std::vector<json> found = objects_of(model, {}, {example_of(owl_image(1)), example_of(owl_image(0))}, 2);
  for (size_t i = 0; i < 2; ++i) {
    expect_objects(found[i], golden[str("like_scores_", i)], golden[str("like_", i)]);
    for (const json& each : found[i]) EXPECT_EQ(each["label"], "example");
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, OwlParity, ::testing::Values("v2", "v1"),
                         [](const auto& name) { return name.param; });

const OwlModel& v2() {
  static const OwlModel model(owl_folder("v2"), {});
  return model;
}

TEST(OwlModel, RunsInTheOtherPrecisions) {
  const Tensor want = owl_golden("v2")["logits_0"];
  for (const auto& [precision, tolerance] :
       {std::pair{kernels::Precision::half, 0.02}, {kernels::Precision::int8, 0.2}}) {
    const OwlModel model(owl_folder("v2"), {.model = {.precision = precision}});
    const auto encoding = model.encode(owl_image(0));
    const Tensor got = models::owl_logits(static_cast<const OwlEncoding&>(*encoding).patches,
                                          model.embed_labels(kOwlLabels, {}).unsqueeze(0))
                           .squeeze(0);
    EXPECT_TRUE(testing::close(got, want, tolerance * largest_owl_value(want))) << kernels::name_of(precision);
    EXPECT_FALSE(testing::close(got, want, 2e-5 * largest_owl_value(want))) << "it is another precision";
  }
}

TEST(OwlModel, ReadsItsFilesWithoutWarnings) {
  const testing::Warnings warnings;
  for (const char* name : {"v1", "v2"}) EXPECT_EQ(first_task(*open_model(owl_folder(name))).name, "detect");
  EXPECT_TRUE(warnings.messages.empty()) << ::testing::PrintToString(warnings.messages);
  EXPECT_ERROR(error_of([] { open_model(owl_folder("v2"), {.model = {.labels = {"cat"}}}); }), "options of the model",
               "others");
}

// The message about a fixture with a change of a file.
std::string owl_config_error(const std::string& name, const std::string& file,
                             const std::function<void(json&)>& change) {
  const fs::path to = testing::scratch_folder();
  fs::copy(owl_folder(name), to, fs::copy_options::recursive);
  json object = json::parse(read_text_file(to / file));
  change(object);
  std::ofstream(to / file) << object;
  std::string message = error_of([&] { open_model(to); });
  if (message.starts_with(to.string())) message.erase(0, to.string().size() + 1);
  return message;
}

TEST(OwlModel, RefusesOtherConfigurations) {
  const char *model = "config.json", *processor = "preprocessor_config.json";
  const auto expect = [](const char* file, const char* where, const char* got,
                         const std::function<void(json&)>& change) {
    EXPECT_ERROR(owl_config_error("v2", file, change), str(file, ": ", where), got);
  };
  expect(model, "model_type", "\"clip\"", [](json& c) { c["model_type"] = "clip"; });
  expect(model, "vision_config", "3", [](json& c) { c["vision_config"] = 3; });
  expect(model, "vision_config: image_size", "48×64", [](json& c) { c["vision_config"]["image_size"] = {48, 64}; });
  expect(model, "projection_dim", "10", [](json& c) { c["projection_dim"] = 10; });
  expect(processor, "image_processor_type", "\"OwlViTImageProcessor\"",
         [](json& c) { c["image_processor_type"] = "OwlViTImageProcessor"; });
  expect(processor, "size", "64×64", [](json& c) { c["size"] = {{"height", 64}, {"width", 64}}; });
  expect(processor, "do_pad", "false", [](json& c) { c["do_pad"] = false; });
  EXPECT_ERROR(owl_config_error("v1", processor, [](json& c) { c["do_center_crop"] = true; }),
               "preprocessor_config.json: do_center_crop", "true");
}

// Older files have a list or one number.
TEST(OwlModel, ReadsOlderSizes) {
  for (const json& size : {json(128), json{128, 128}}) {
    const fs::path to = testing::scratch_folder(), file = to / "preprocessor_config.json";
    fs::copy(owl_folder("v1"), to, fs::copy_options::recursive);
    json object = json::parse(read_text_file(file));
    object.erase("image_processor_type");
    object["feature_extractor_type"] = "OwlViTFeatureExtractor";
    object["size"] = size;
    std::ofstream(file) << object;
    const Parameters given{{"labels", kAllLabels}};
    EXPECT_EQ(objects_of(OwlModel(to, {}), given), objects_of(OwlModel(owl_folder("v1"), {}), given)) << size;
  }
}

TEST(OpenDetect, LabelsMayBeIndependent) {
  const Parameters all{{"labels", kAllLabels}, {"threshold", "0"}, {"per-label", "true"}};
  const json found = objects_of(v2(), all)[0];
  EXPECT_EQ(found.size(), 3 * 36U);
  const json one = objects_of(v2(), {{"labels", "grass"}, {"threshold", "0"}})[0];
  std::vector<json> of_grass;
  std::ranges::copy_if(found, std::back_inserter(of_grass), [](const json& each) { return each["label"] == "grass"; });
  ASSERT_EQ(of_grass.size(), one.size());
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(of_grass[i]["index"], 2);
    EXPECT_EQ(of_grass[i]["box"], one[i]["box"]);
    EXPECT_NEAR(of_grass[i]["score"].get<float>(), one[i]["score"].get<float>(), 1e-5) << "it depends on other labels";
  }
}

TEST(OpenDetect, LabelsAreEmbeddedInTemplates) {
  const auto with = [](const Parameters& more) {
    Parameters given{{"labels", "cat"}, {"threshold", "0"}};
    given.insert(given.end(), more.begin(), more.end());
    json found = objects_of(v2(), given)[0];
    for (json& each : found) each.erase("label");
    return found;
  };
  json whole = objects_of(v2(), {{"labels", "a cat"}, {"threshold", "0"}})[0];
  for (json& each : whole) each.erase("label");
  EXPECT_EQ(with({{"template", "a {}"}}), whole);
  EXPECT_NE(with({}), whole);
  EXPECT_NE(with({{"template", "a {}"}, {"template", "the {}"}}), whole) << "the mean of both";
}

TEST(OpenDetect, BetterObjectsOfALabelSuppressOthers) {
  const Parameters all{{"labels", kAllLabels}, {"threshold", "0"}};
  Parameters few = all;
  few.emplace_back("nms", "0");
  EXPECT_LT(objects_of(v2(), few)[0].size(), objects_of(v2(), all)[0].size());
  const std::string example = example_of(owl_image(1));
  EXPECT_GE(objects_of(v2(), {{"nms", "1"}}, {example})[0].size(), objects_of(v2(), {}, {example})[0].size());
}

TEST(OpenDetect, AnExampleIsAnObjectInABox) {
  const std::string example = example_of(owl_image(1));  // 163×97 pixels
  const auto query = [](const std::optional<std::array<float, 4>>& box) {
    return v2().embed_example(*v2().encode(owl_image(1)), box);
  };
  const std::array<float, 4> box{80, 40, 120, 80};
  ASSERT_FALSE(testing::close(query(box), query({}), 1e-3)) << "the box is of another patch";
  const auto found = [&](const Parameters& given) { return objects_of(v2(), given, {example})[0]; };
  EXPECT_NE(found({{"like-box", "80,40,120,80"}}), found({}));
  const auto error_with = [&](const std::string& text) { return error_of([&] { found({{"like-box", text}}); }); };
  EXPECT_ERROR(error_with("1,2,3"), "like-box", "'1,2,3'");
  EXPECT_ERROR(error_with("170,0,180,10"), "like-box", "170,0,180,10");
}

// An example for all images, and one for each.
TEST(OpenDetect, AnExampleMayBeForAllImages) {
  const std::string example = example_of(owl_image(1));
  EXPECT_EQ(objects_of(v2(), {}, {example}, 2), objects_of(v2(), {}, {example, example}, 2));
}

TEST(OpenDetect, TakesLabelsOrAnExample) {
  const std::string example = example_of(owl_image(1));
  const auto error_with = [](const Parameters& given, const std::vector<std::string>& examples = {}) {
    return error_of([&] { objects_of(v2(), given, examples); });
  };
  EXPECT_ERROR(error_with({}), "labels", "none");
  EXPECT_ERROR(error_with({{"labels", "cat,"}}), "labels", "\"cat,\"");
  EXPECT_ERROR(error_with({{"labels", "cat"}}, {example}), "like", "both");
  EXPECT_ERROR(error_with({{"labels", "cat"}, {"like-box", "0,0,9,9"}}), "like-box", "none");
  EXPECT_ERROR(error_with({{"template", "a {}"}}, {example}), "template", "an example");
  EXPECT_ERROR(error_with({{"per-label", "true"}}, {example}), "per-label", "an example");
  EXPECT_ERROR(error_with({{"labels", "cat"}, {"template", "a cat"}}), "template", "\"a cat\"");
  EXPECT_NE(error_with({}, {"no image"}).find("like"), std::string::npos);
  EXPECT_ERROR(error_with({{"labels", "cat"}, {"classes", "cat"}}), "request", "'classes'");
}

}  // namespace
}  // namespace vitrail::tasks
