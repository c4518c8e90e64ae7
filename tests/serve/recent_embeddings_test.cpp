// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "vitrail/serve/recent_embeddings_internal.h"

namespace vitrail::serve {
namespace {

sam::ImageEmbedding embedding_of(int64_t values) {
  sam::ImageEmbedding embedding;
  embedding.values = Tensor::zeros({values});
  embedding.width = values;
  return embedding;
}

TEST(RecentEmbeddings, TheOnesUsedLongestAgoAreDroppedAboveTheBudget) {
  RecentEmbeddings recent(100 * sizeof(float));
  recent.add("a", embedding_of(40));
  recent.add("b", embedding_of(40));
  recent.add("c", embedding_of(20));  // the budget is full
  EXPECT_EQ(recent.bytes(), 100 * sizeof(float));
  ASSERT_TRUE(recent.find("a").has_value());
  EXPECT_EQ(recent.find("a")->width, 40);
  EXPECT_FALSE(recent.find("none").has_value());
  recent.add("d", embedding_of(1));
  EXPECT_FALSE(recent.find("b").has_value());  // not a, which was used after it
  EXPECT_TRUE(recent.find("a").has_value());
  EXPECT_TRUE(recent.find("c").has_value());
  EXPECT_TRUE(recent.find("d").has_value());
  EXPECT_EQ(recent.bytes(), 61 * sizeof(float));
  recent.add("e", embedding_of(100));  // the whole budget
  EXPECT_EQ(recent.bytes(), 100 * sizeof(float));
  EXPECT_FALSE(recent.find("a").has_value());
  recent.add("f", embedding_of(101));  // drops nothing
  EXPECT_FALSE(recent.find("f").has_value());
  EXPECT_TRUE(recent.find("e").has_value());
}

TEST(RecentEmbeddings, AKeyIsKeptOnceAndAllTensorsCount) {
  RecentEmbeddings recent(1000);
  recent.add("a", embedding_of(10));
  recent.add("a", embedding_of(20));
  EXPECT_EQ(recent.bytes(), 10 * sizeof(float));
  EXPECT_EQ(recent.find("a")->width, 10);
  sam::ImageEmbedding large = embedding_of(1);
  large.hq_features = Tensor::zeros({2});
  large.projections = Tensor::zeros({4});
  large.decoder_input = Tensor::zeros({8});
  recent.add("b", large);
  EXPECT_EQ(recent.bytes(), (10 + 15) * sizeof(float));
}

}  // namespace
}  // namespace vitrail::serve
