// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "vitrail/serve/recent_embeddings_internal.h"

namespace vitrail::serve {
namespace {

struct Encoding : tasks::ImageEncoding {
  explicit Encoding(size_t size) : size_(size) { width = static_cast<int64_t>(size); }
  size_t bytes() const override { return size_; }
  size_t size_;
};

EncodingPointer encoding_of(size_t bytes) { return std::make_shared<const Encoding>(bytes); }

TEST(RecentEmbeddings, TheOnesUsedLongestAgoAreDroppedAboveTheBudget) {
  RecentEmbeddings recent(100);
  recent.add("a", encoding_of(40));
  recent.add("b", encoding_of(40));
  recent.add("c", encoding_of(20));  // the budget is full
  EXPECT_EQ(recent.bytes(), 100U);
  ASSERT_TRUE(recent.find("a"));
  EXPECT_EQ(recent.find("a")->width, 40);
  EXPECT_FALSE(recent.find("none"));
  recent.add("d", encoding_of(1));
  EXPECT_FALSE(recent.find("b"));  // not a, which was used after it
  EXPECT_TRUE(recent.find("a"));
  EXPECT_TRUE(recent.find("c"));
  EXPECT_TRUE(recent.find("d"));
  EXPECT_EQ(recent.bytes(), 61U);
  recent.add("e", encoding_of(100));  // the whole budget
  EXPECT_EQ(recent.bytes(), 100U);
  EXPECT_FALSE(recent.find("a"));
  recent.add("f", encoding_of(101));  // drops nothing
  EXPECT_FALSE(recent.find("f"));
  EXPECT_TRUE(recent.find("e"));
}

TEST(RecentEmbeddings, AKeyIsKeptOnce) {
  RecentEmbeddings recent(1000);
  recent.add("a", encoding_of(10));
  recent.add("a", encoding_of(20));
  EXPECT_EQ(recent.bytes(), 10U);
  EXPECT_EQ(recent.find("a")->width, 10);
}

}  // namespace
}  // namespace vitrail::serve
