// SPDX-License-Identifier: Apache-2.0
// Tasks by their names.
#include <nlohmann/json.hpp>

#include "tests/c_api/handles.h"

namespace vitrail::testing {
namespace {

using OwnedText = Owned<vitrail_text, vitrail_text_free>;

TEST(CApi, RunsTasksByTheirNames) {
  const Model model(small_model());
  OwnedModel handle;
  ASSERT_EQ(message_of(vitrail_model_open(small_model().c_str(), nullptr, &handle)), "");
  const Inputs in(model, handle);
  const auto run = [&](const char* task, const char* option, OwnedText& text) {
    return message_of(vitrail_run(handle, task, in.handles.data(), 2, &option, 1, &text));
  };
  OwnedText classes;
  ASSERT_EQ(run("classify", "top=2", classes), "");
  const auto results = nlohmann::json::parse(vitrail_text_data(classes));
  ASSERT_EQ(results.size(), 2U);
  for (size_t i = 0; i < 2; ++i) {
    const std::vector<Prediction> wanted = model.classify(in.views[i], 2);
    const auto& got = results[i]["predictions"];
    ASSERT_EQ(got.size(), 2U);
    EXPECT_EQ(got[1]["index"], wanted[1].index);
    EXPECT_EQ(got[1]["label"], wanted[1].label);
  }
  OwnedText none;
  EXPECT_EQ(
      run("segment", "top=2", none),
      "task: expected one that the model is for: classify, embed, zeroshot, attention, pca, explain, got 'segment'");
  EXPECT_EQ(run("classify", "tops=2", none), "request: expected an option of this route: top, got 'tops'");
  EXPECT_EQ(none.handle, nullptr);
}

TEST(CApi, GivesTheArraysOfATask) {
  const Model model(small_model());
  OwnedModel handle;
  ASSERT_EQ(message_of(vitrail_model_open(small_model().c_str(), nullptr, &handle)), "");
  const Inputs in(model, handle);
  OwnedText results;
  ASSERT_EQ(message_of(vitrail_run(handle, "classify", in.handles.data(), 2, nullptr, 0, &results)), "");
  OwnedTensor first, second, none;
  EXPECT_OK(vitrail_run_array(results, 0, "logits", &first));
  EXPECT_OK(vitrail_run_array(results, 1, "logits", &second));
  const Tensor wanted = model.logits(in.views);
  expect_same(first, wanted.select(0, 0));
  expect_same(second, wanted.select(0, 1));
  EXPECT_EQ(message_of(vitrail_run_array(results, 0, "depth", &none)), "name: expected one of logits, got 'depth'");
  EXPECT_EQ(message_of(vitrail_run_array(results, 2, "logits", &none)), "index: expected one of 2 images, got 2");
  EXPECT_EQ(message_of(vitrail_run_array(nullptr, 0, "logits", &none)), "results: expected a pointer, got NULL");
  EXPECT_EQ(none.handle, nullptr);
}

TEST(CApi, GivesTheFilesOfATask) {
  OwnedModel handle;
  ASSERT_EQ(message_of(vitrail_model_open(small_model().c_str(), nullptr, &handle)), "");
  const Model model(small_model());
  const Inputs in(model, handle);
  const auto run = [&](const char* task, const char* option, OwnedText& text) {
    return message_of(vitrail_run(handle, task, in.handles.data(), 2, &option, 1, &text));
  };
  const uint8_t* bytes = nullptr;
  size_t size = 0;
  OwnedText page, figure, classes, none;
  ASSERT_EQ(run("explain", "format=html", page), "");
  EXPECT_OK(vitrail_run_file(page.handle, 1, &bytes, &size));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes), size).substr(0, 15), "<!doctype html>");
  EXPECT_EQ(nlohmann::json::parse(vitrail_text_data(page))[1]["bytes"], size);
  EXPECT_EQ(message_of(vitrail_run_file(page.handle, 2, &bytes, &size)), "index: expected one of 2 images, got 2");
  ASSERT_EQ(run("attention", "format=png", figure), "");
  EXPECT_OK(vitrail_run_file(figure.handle, 0, &bytes, &size));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes), 4), "\x89PNG");
  ASSERT_EQ(run("classify", "top=1", classes), "");
  EXPECT_EQ(message_of(vitrail_run_file(classes.handle, 0, &bytes, &size)),
            "results: expected those of vitrail_run with the option format, got those without it");
  EXPECT_EQ(run("explain", "format=png", none), "format: expected one of json, html, got 'png'");
}

// A further model stays open with the model: its file may be gone.
TEST(CApi, OpensTheModelsOfOptionsOnce) {
  const std::string detector = fixture("yolos/mid/config.json").parent_path().string();
  const fs::path masks = scratch_folder() / "sam.pth";
  fs::copy_file(sam_fixture("global").model, masks);
  OwnedModel handle;
  ASSERT_EQ(message_of(vitrail_model_open(detector.c_str(), nullptr, &handle)), "");
  const Inputs in(Model(small_model()), handle);
  const std::string option = "masks=" + masks.string();
  const auto run = [&] {
    OwnedText text;
    const char* const options[] = {option.c_str(), "threshold=0"};
    EXPECT_OK(vitrail_run(handle, "detect", in.handles.data(), 2, options, 2, &text));
    return nlohmann::json::parse(vitrail_text_data(text));
  };
  const auto found = run();
  EXPECT_TRUE(found[0]["detections"][0].contains("rle"));
  fs::remove(masks);
  EXPECT_EQ(run(), found);
}

}  // namespace
}  // namespace vitrail::testing
