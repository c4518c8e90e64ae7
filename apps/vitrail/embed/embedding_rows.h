// SPDX-License-Identifier: Apache-2.0
#pragma once
// The embeddings that `vitrail embed` wrote, as one set of unit vectors.
#include <deque>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "vitrail/analysis/vector_rows.h"
#include "vitrail/base/npy.h"

namespace vitrail::app {

// The arrays of files FILE.npy and of folders, whose arrays are sorted by name.  They stay in their files.  Rows are
// scaled to length 1.  Rows of NaN, which images that failed have, are left out.
class EmbeddingRows : public analysis::VectorRows {
 public:
  // Throws Error for no array, one that is not [n, D], different widths, values that are not finite in other rows, and
  // a row of zeros.
  explicit EmbeddingRows(const std::vector<std::string>& inputs);

  int64_t count() const override { return count_; }
  int64_t width() const override { return width_; }
  void read(int64_t first, int64_t count, float* values) const override;

  int64_t failed() const { return failed_; }
  const std::vector<std::filesystem::path>& files() const { return files_; }

  // Calls on_name with the path of each row, in order: of the lines in FILE.txt, or SHARD.tar:FILE of the objects in
  // SHARD.jsonl.  Throws Error for an array without such a list, or with one of another length.
  void for_each_name(const std::function<void(const std::string&)>& on_name) const;

 private:
  // Consecutive rows of an array.
  struct Range {
    size_t file;
    int64_t file_row, row, count;
  };
  void add_file(const std::filesystem::path& file);
  void add_row(size_t file, int64_t file_row);

  std::vector<std::filesystem::path> files_;
  std::deque<NpyRows> arrays_;
  std::vector<Range> ranges_;
  int64_t count_ = 0, width_ = 0, failed_ = 0;
};

}  // namespace vitrail::app
