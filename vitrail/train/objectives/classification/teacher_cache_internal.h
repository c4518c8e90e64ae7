// SPDX-License-Identifier: Apache-2.0
#pragma once
// A file that caches the logits of a distillation teacher for each view of each image.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::train {

// A sparse file with one row per (sample, view).  Rows survive the death of the process that wrote them; rows that are
// never written take no disk space.
class TeacherCache {
 public:
  // `identity`: a text that determines the logits.  A file with another identity is truncated.  Throws Error if the
  // file cannot be opened or written.
  TeacherCache(const std::filesystem::path& file, const std::string& identity, int64_t views, int64_t classes);
  ~TeacherCache();
  TeacherCache(const TeacherCache&) = delete;
  TeacherCache& operator=(const TeacherCache&) = delete;

  // Overwrites the rows of `logits` [samples, classes] f32 that are in the cache.  Returns whether all are.
  bool read(const std::vector<int64_t>& samples, int64_t view, const Tensor& logits) const;
  void write(const std::vector<int64_t>& samples, int64_t view, const Tensor& logits);
  // Overwrites `logits` [samples, classes] f32 with the mean over the cached views of each sample.  Returns false if a
  // sample has no cached view.
  bool read_mean(const std::vector<int64_t>& samples, const Tensor& logits) const;

 private:
  int64_t row_offset(int64_t sample, int64_t view) const;  // bytes
  bool read_row(int64_t sample, int64_t view, std::vector<float>& row) const;

  std::filesystem::path path_;
  int64_t views_, classes_;
  int file_ = -1;
};

}  // namespace vitrail::train
