// SPDX-License-Identifier: Apache-2.0
// `vitrail eval` with EoMT, on sets that are made of what the model finds.
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/apps/cli_fixture.h"
#include "tests/apps/option_effects.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/image/encode.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string eomt_model(const std::string& name) { return fixture("eomt/" + name + "/config.json").parent_path(); }

// A set whose annotations are what the model finds, in the categories LABEL_0 to LABEL_4, which are things except the
// last two.
fs::path found_segments(const std::string& model) {
  const fs::path set = scratch_folder(), annotations = set / "annotations";
  fs::create_directories(set / "val");
  const Golden pixels = read_golden(fixture("depth/images.safetensors"));
  for (const char* name : {"image_0", "image_1"}) {
    const Tensor& values = pixels[name];
    image::Image image = image::make_image(values.size(1), values.size(0), 3);
    std::memcpy(image.pixels.data(), values.raw(), image.pixels.size());
    image::write_png(set / "val" / (std::string(name) + ".png"), image);
  }
  json content{{"images", json::array()}, {"annotations", json::array()}, {"categories", json::array()}};
  for (int i = 0; i < 5; ++i)
    content["categories"].push_back(
        {{"id", 10 - i}, {"name", "LABEL_" + std::to_string(i)}, {"isthing", i < 3 ? 1 : 0}});
  for (const json& line : json_lines(run({"segment", "-m", eomt_model(model), set / "val", "--task", "panoptic",
                                          "--colors", "panoptic", "--render", annotations / "panoptic_val"})
                                         .out)) {
    const std::string file = fs::path(line["path"].get<std::string>()).filename();
    const size_t id = content["images"].size();
    content["images"].push_back({{"id", id}, {"file_name", file}});
    json segments = json::array();
    for (const json& segment : line["segments"])
      segments.push_back({{"id", segment["id"]}, {"category_id", 10 - segment["index"].get<int>()}});
    content["annotations"].push_back({{"image_id", id}, {"file_name", file}, {"segments_info", segments}});
  }
  std::ofstream(annotations / "panoptic_val.json") << content;
  return set;
}

json annotations_of(const fs::path& set) { return json::parse(content_of(set / "annotations" / "panoptic_val.json")); }

void write_annotations(const fs::path& set, const json& content) {
  std::ofstream(set / "annotations" / "panoptic_val.json") << content;
}

json quality(const fs::path& set) {
  return json_of(Arguments{"eval", "-m", eomt_model("dinov3_panoptic"), set, "--format", "json"});
}

TEST(EvalOfPanopticMaps, WhatTheModelFindsIsPerfect) {
  const fs::path set = found_segments("dinov3_panoptic");
  const json report = quality(set);
  EXPECT_EQ(report["images"], 2);
  EXPECT_EQ(report["all"]["pq"], 1);
  EXPECT_EQ(report["classes"].size(), 5u);
  EXPECT_EQ(report["classes"][4]["label"], "LABEL_0") << "in the order of the categories' ids";
  EXPECT_EQ(report["all"]["categories"].get<int>(),
            report["things"]["categories"].get<int>() + report["stuff"]["categories"].get<int>());
  const std::string table = run({"eval", "-m", eomt_model("dinov3_panoptic"), set, "--split", "val"}).out;
  EXPECT_TRUE(contains(table, "all        PQ 1.0  SQ 1.0  RQ 1.0")) << table;
}

TEST(EvalOfPanopticMaps, CountsSegmentsOfAnotherCategory) {
  const fs::path set = found_segments("dinov3_panoptic");
  json content = annotations_of(set);
  size_t changed = 0;
  for (json& annotation : content["annotations"]) {
    for (json& segment : annotation["segments_info"]) {
      segment["category_id"] = segment["category_id"] == 10 ? 9 : 10;
      ++changed;
    }
  }
  ASSERT_GT(changed, 0u);
  write_annotations(set, content);
  EXPECT_EQ(quality(set)["all"]["pq"], 0);
}

TEST(EvalOfPanopticMaps, RefusesOtherSetsAndModels) {
  const fs::path set = found_segments("dinov3_panoptic");
  const ProgramResult reduced = run_program({"eval", "-m", eomt_model("panoptic"), set, "--reduce-labels"});
  EXPECT_EQ(reduced.status, 2);
  EXPECT_TRUE(contains(reduced.err, "--reduce-labels: does not apply to a panoptic set")) << reduced.err;
  const std::string semantic = refusal({"eval", "-m", eomt_model("semantic"), set});
  EXPECT_TRUE(contains(semantic, "got one for semantic maps")) << semantic;
  json content = annotations_of(set);
  content["categories"][3]["name"] = "sky";
  write_annotations(set, content);
  const std::string names = refusal({"eval", "-m", eomt_model("dinov3_panoptic"), set});
  EXPECT_TRUE(contains(names, "none for 1: \"LABEL_3\"")) << names;
}

}  // namespace
}  // namespace vitrail::testing
