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
  EXPECT_EQ(run("segment", "top=2", none),
            "task: expected one that the model is for: classify, embed, zeroshot, attention, pca, got 'segment'");
  EXPECT_EQ(run("classify", "tops=2", none), "request: expected an option of this route: top, got 'tops'");
  EXPECT_EQ(none.handle, nullptr);
}

}  // namespace
}  // namespace vitrail::testing
