// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/task.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/messages.h"

namespace vitrail::tasks {
namespace {

using testing::error_of;

TEST(ResultSize, IsLimitedByTheProductOfItsFactors) {
  EXPECT_NO_THROW(check_result_size(10, 10, 100));
  EXPECT_NO_THROW(check_result_size(10, 0, 100));
  EXPECT_NO_THROW(check_result_size(0, 1000, 100));
  EXPECT_THROW(check_result_size(11, 10, 109), TooLarge);
  EXPECT_THROW(check_result_size(1, 101, 100), TooLarge);
  EXPECT_THROW(check_result_size(INT64_MAX, INT64_MAX), TooLarge);
  EXPECT_NO_THROW(check_result_size(1, kMaxResultValues));
  EXPECT_NO_THROW(check_result_size(kMaxResultValues, 1));
  EXPECT_EQ(error_of([] { check_result_size(2, kMaxResultValues); }),
            "the results have more than 16777216 values: send fewer images, or ask for less");
}

TEST(TaskTable, RowsOfOneNameAreListedOnce) {
  const std::vector<std::string> names = task_names();
  EXPECT_EQ(std::ranges::count(names, "segment"), 1);
  EXPECT_EQ(std::ranges::count(tasks(), "segment", &Task::name), 3);
  EXPECT_EQ(models_for_task("segment"), "one of Segment Anything, or a semantic segmenter, or CLIPSeg");
  EXPECT_EQ(models_for_task("none"), "");
}

TEST(TaskTable, AnAddedTaskHasANameOfItsOwn) {
  EXPECT_EQ(error_of([] { add_task({.name = "pca", .model = ""}); }), "task: expected a name of its own, got 'pca'");
}

}  // namespace
}  // namespace vitrail::tasks
