// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/classification/teacher_cache_internal.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "vitrail/base/error.h"
#include "vitrail/base/random.h"

namespace vitrail::train {
namespace {

// The header of a cache file: a magic number with the format version, and the hash of the identity.
struct FileHeader {
  std::array<char, 8> magic{'v', 't', 'e', 'a', 'c', 'h', 'e', '1'};
  uint64_t identity = 0;
  bool operator==(const FileHeader&) const = default;
};

constexpr float kPresent = 1;  // last value of a row that has been written; a hole in the file reads as 0

Error cache_failure(const std::filesystem::path& path, const char* what) {
  return Error(str(path.string(), ": cannot be ", what, ": ", std::strerror(errno)));
}

}  // namespace

TeacherCache::TeacherCache(const std::filesystem::path& file, const std::string& identity, int64_t views,
                           int64_t classes)
    : path_(file), views_(views), classes_(classes) {
  file_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
  if (file_ < 0) throw cache_failure(path_, "opened");
  const FileHeader expected{.identity =
                                random_key(identity, static_cast<uint64_t>(views), static_cast<uint64_t>(classes))};
  FileHeader found{};
  if (::pread(file_, &found, sizeof found, 0) == sizeof found && found == expected) return;
  if (::ftruncate(file_, 0) == 0 && ::pwrite(file_, &expected, sizeof expected, 0) == sizeof expected) return;
  const Error error = cache_failure(path_, "written");
  ::close(file_);
  throw error;
}

TeacherCache::~TeacherCache() { ::close(file_); }

int64_t TeacherCache::row_offset(int64_t sample, int64_t view) const {
  if (view < 0 || view >= views_) throw Error("view", str("0 to ", views_ - 1), str(view));
  return static_cast<int64_t>(sizeof(FileHeader)) +
         (sample * views_ + view) * (classes_ + 1) * static_cast<int64_t>(sizeof(float));
}

bool TeacherCache::read_row(int64_t sample, int64_t view, std::vector<float>& row) const {
  const auto bytes = static_cast<ssize_t>(row.size() * sizeof(float));
  const ssize_t got = ::pread(file_, row.data(), static_cast<size_t>(bytes), row_offset(sample, view));
  if (got < 0) throw cache_failure(path_, "read");
  return got == bytes && row.back() == kPresent;
}

bool TeacherCache::read(const std::vector<int64_t>& samples, int64_t view, const Tensor& logits) const {
  std::vector<float> row(static_cast<size_t>(classes_ + 1));
  bool all = true;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (read_row(samples[i], view, row)) {
      std::copy_n(row.data(), classes_, logits.data<float>() + static_cast<int64_t>(i) * classes_);
    } else {
      all = false;
    }
  }
  return all;
}

bool TeacherCache::read_mean(const std::vector<int64_t>& samples, const Tensor& logits) const {
  std::vector<float> row(static_cast<size_t>(classes_ + 1));
  for (size_t i = 0; i < samples.size(); ++i) {
    float* const mean = logits.data<float>() + static_cast<int64_t>(i) * classes_;
    std::fill(mean, mean + classes_, 0.0f);
    int64_t num_known = 0;
    for (int64_t view = 0; view < views_; ++view) {
      if (!read_row(samples[i], view, row)) continue;
      for (int64_t c = 0; c < classes_; ++c) mean[c] += row[static_cast<size_t>(c)];
      ++num_known;
    }
    if (num_known == 0) return false;
    for (int64_t c = 0; c < classes_; ++c) mean[c] /= static_cast<float>(num_known);
  }
  return true;
}

void TeacherCache::write(const std::vector<int64_t>& samples, int64_t view, const Tensor& logits) {
  std::vector<float> row(static_cast<size_t>(classes_ + 1), kPresent);
  const auto bytes = static_cast<ssize_t>(row.size() * sizeof(float));
  for (size_t i = 0; i < samples.size(); ++i) {
    std::copy_n(logits.data<float>() + static_cast<int64_t>(i) * classes_, classes_, row.data());
    errno = ENOSPC;  // a short write does not set errno
    if (::pwrite(file_, row.data(), static_cast<size_t>(bytes), row_offset(samples[i], view)) != bytes)
      throw cache_failure(path_, "written");
  }
}

}  // namespace vitrail::train
