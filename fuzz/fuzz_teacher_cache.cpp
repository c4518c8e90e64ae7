// SPDX-License-Identifier: Apache-2.0
// Fuzzes the cache of a teacher's logits.  Every input must give rows that are present or absent, or a vitrail::Error.
// If the first byte is odd, the rest follows a valid header.
#include "fuzz/inputs.h"
#include "vitrail/train/objectives/classification/teacher_cache_internal.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vitrail;
  static const fuzz::Folder folder;
  constexpr int64_t kViews = 2, kClasses = 3;
  constexpr size_t kHeaderBytes = 16;
  if (size == 0) return 0;
  const auto file = folder.path() / "cache";
  std::string content(fuzz::text_of(data + 1, size - 1));
  if (data[0] & 1) {
    folder.write("cache", "");
    train::TeacherCache(file, "teacher", kViews, kClasses);
    std::string header(kHeaderBytes, '\0');
    const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (::read(descriptor, header.data(), kHeaderBytes) != std::ssize(header)) std::abort();
    ::close(descriptor);
    content.insert(0, header);
  }
  folder.write("cache", content);
  fuzz::attempt([&] {
    train::TeacherCache cache(file, "teacher", kViews, kClasses);
    const std::vector<int64_t> samples{0, 1, 7};
    const Tensor logits = Tensor::zeros({3, kClasses});
    for (int64_t view = 0; view < kViews; ++view) cache.read(samples, view, logits);
    cache.read_mean(samples, logits);
    cache.write({1}, 1, Tensor::zeros({1, kClasses}));
  });
  return 0;
}
