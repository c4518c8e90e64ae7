// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a teacher has said of each view of each image, in a file.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::train {

// A row for each (sample, view) that is there once it has been written, also for a process that goes on after this one
// was killed.  Rows that never come take no room on the disk.
class TeacherCache {
 public:
  // `identity`: text that decides what the answers are; a file that was begun with another one is begun anew.
  // Throws Error when the file cannot be opened or written.
  TeacherCache(const std::filesystem::path& file, const std::string& identity, int64_t views, int64_t classes);
  ~TeacherCache();
  TeacherCache(const TeacherCache&) = delete;
  TeacherCache& operator=(const TeacherCache&) = delete;

  // Overwrites the rows of `logits` [samples, classes] f32 that are known; whether all are.
  bool read(const std::vector<int64_t>& samples, int64_t view, const Tensor& logits) const;
  void write(const std::vector<int64_t>& samples, int64_t view, const Tensor& logits);
  // `logits` [samples, classes] f32 becomes the mean over the views that are known; whether each sample has one.
  bool mean(const std::vector<int64_t>& samples, const Tensor& logits) const;

 private:
  int64_t place_of(int64_t sample, int64_t view) const;
  bool read_row(int64_t sample, int64_t view, std::vector<float>& row) const;
  std::filesystem::path path_;
  int64_t views_, classes_;
  int file_ = -1;
};

}  // namespace vitrail::train
