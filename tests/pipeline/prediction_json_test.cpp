// SPDX-License-Identifier: Apache-2.0
#include "vitrail/pipeline/prediction_json_internal.h"

#include <gtest/gtest.h>

#include "tests/support/messages.h"

namespace vitrail::pipeline {
namespace {

using Names = std::vector<std::string>;

TEST(PredictionJson, HasThePathTheActivationAndThePredictionsInOrder) {
  EXPECT_EQ(json_line(prediction_json("a.png", "sigmoid", {{7, "cat", 0.5F}, {2, "dog", 0.25F}})),
            R"({"path":"a.png","activation":"sigmoid","predictions":[{"index":7,"label":"cat","probability":0.5},)"
            R"({"index":2,"label":"dog","probability":0.25}]})");
  EXPECT_EQ(json_line(prediction_json("a\xff.png", "softmax", {})),
            "{\"path\":\"a\xEF\xBF\xBD.png\",\"activation\":\"softmax\",\"predictions\":[]}");
  EXPECT_EQ(json_line(failure_json("a\n\"b\"", "no image")), R"({"path":"a\n\"b\"","error":"no image"})");
}

TEST(BestLabels, HaveTheMaximalProbabilitiesAndEqualOnesKeepTheirOrder) {
  const Tensor row = Tensor::from<float>({1, 4}, {0.2F, 0.4F, 0.2F, 0.4F});
  const Names labels{"a", "b", "c", "d"};
  const auto names = [&](int64_t top) {
    Names result;
    for (const Prediction& p : best_labels(row, labels, top)) {
      EXPECT_EQ(p.label, labels[static_cast<size_t>(p.index)]);
      EXPECT_EQ(p.probability, row.data<float>()[p.index]);
      result.push_back(p.label);
    }
    return result;
  };
  EXPECT_EQ(names(3), (Names{"b", "d", "a"}));
  EXPECT_EQ(names(4), (Names{"b", "d", "a", "c"}));
  EXPECT_EQ(names(9), names(4));
  EXPECT_EQ(names(0), Names{});
}

TEST(SplitLabels, NamesAreBetweenCommasWithoutTheSpacesAroundThem) {
  EXPECT_EQ(split_labels("cat"), Names{"cat"});
  EXPECT_EQ(split_labels(" cat , hot dog,x "), (Names{"cat", "hot dog", "x"}));
  for (const char* labels : {"", " ", "cat,", ",cat", "cat, ,dog"}) {
    const std::string message = testing::error_of([&] { split_labels(labels); });
    EXPECT_TRUE(testing::contains(message, "labels: expected names with commas")) << message;
  }
}

}  // namespace
}  // namespace vitrail::pipeline
