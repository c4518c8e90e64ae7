// SPDX-License-Identifier: Apache-2.0
#include "vitrail/hub/download_internal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "vitrail/base/atomic_file.h"
#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/hub/blob_digest_internal.h"

namespace vitrail::hub {
namespace fs = std::filesystem;
namespace {

constexpr const char *kPartial = ".vitrail-partial", *kTag = ".vitrail-etag";

fs::path with_ending(const fs::path& blob, const char* ending) { return blob.string() + ending; }

// The start of "bytes 100-199/200" if the range goes to the end of `size` bytes.
std::optional<int64_t> start_of_range(const std::string& range, int64_t size) {
  constexpr std::string_view kUnit = "bytes ";
  if (!range.starts_with(kUnit)) return std::nullopt;
  int64_t start = -1;
  const char *begin = range.data() + kUnit.size(), *end = range.data() + range.size();
  const auto parsed = std::from_chars(begin, end, start);
  if (parsed.ec != std::errc() || start < 0) return std::nullopt;
  return std::string_view(parsed.ptr, end) == str("-", size - 1, "/", size) ? std::optional(start) : std::nullopt;
}

// The partial file with the digest of what it has.
class Partial {
 public:
  explicit Partial(const Download& download)
      : path_(with_ending(download.blob, kPartial)), tag_(with_ending(download.blob, kTag)), download_(download) {
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor_ < 0) fail(errno);
    read_digest();
  }
  ~Partial() { ::close(descriptor_); }
  Partial(const Partial&) = delete;
  Partial& operator=(const Partial&) = delete;

  int64_t size() const { return size_; }

  void clear() {
    if (::ftruncate(descriptor_, 0) != 0 || ::lseek(descriptor_, 0, SEEK_SET) != 0) fail(errno);
    size_ = 0;
    clear_digest();
  }

  void append(std::string_view data) {
    digest_->update(data.data(), data.size());
    while (!data.empty()) {
      const ssize_t written = ::write(descriptor_, data.data(), data.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) fail(written < 0 ? errno : EIO);
      size_ += written;
      data.remove_prefix(static_cast<size_t>(written));
    }
  }

  // The server's name for this version of the content, so that it continues no other one.
  std::string tag() const {
    constexpr size_t kMaxBytes = 512;
    std::error_code unreadable;
    return fs::is_regular_file(tag_, unreadable) ? read_text_file(tag_, kMaxBytes) : "";
  }
  void set_tag(const std::string& tag) {
    std::error_code unreadable;
    if (tag.empty() || tag.starts_with("W/")) {  // a weak one may not be used for a range
      fs::remove(tag_, unreadable);
      return;
    }
    AtomicFile file(tag_);
    file.write(tag);
    file.commit();
  }

  // Gives the file its name if its digest is that of the name.  Otherwise deletes it and returns false.
  bool finish() {
    const bool right = digest_->hex() == download_.blob.filename();
    if (right && !sync_file(descriptor_)) fail(errno);
    if (right && ::rename(path_.c_str(), download_.blob.c_str()) != 0) fail(errno);
    std::error_code unreadable;
    fs::remove(tag_, unreadable);
    if (right)
      sync_folder(download_.blob.parent_path());
    else
      clear();
    return right;
  }

 private:
  // What a former process has left.
  void read_digest() {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) fail(errno);
    if (!S_ISREG(status.st_mode)) throw Error(path_.string(), "a file", "a pipe or device: delete it");
    clear_digest();
    if (status.st_size > download_.size) return clear();
    std::array<char, 1 << 16> buffer{};
    for (;;) {
      const ssize_t count = ::read(descriptor_, buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail(errno);
      if (count == 0) return;
      digest_->update(buffer.data(), static_cast<size_t>(count));
      size_ += count;
    }
  }
  void clear_digest() { digest_ = digest_of_blob(download_.blob.filename(), download_.size); }

  [[noreturn]] void fail(int reason) const {
    if (reason == ENOSPC || reason == EDQUOT) {
      throw Error(str(path_.string(), ": the disk is full; ", download_.size - size_,
                      " bytes are missing. Free some space, or name another folder with HF_HUB_CACHE; the next try "
                      "continues here"));
    }
    throw Error(str(path_.string(), ": cannot be written: ", std::strerror(reason)));
  }

  fs::path path_, tag_;
  const Download& download_;
  int descriptor_ = -1;
  int64_t size_ = 0;
  std::unique_ptr<Digest> digest_;
};

// One request for what is missing.
class Attempt {
 public:
  Attempt(const Download& download, Partial& partial, const std::function<void(int64_t)>& on_bytes)
      : download_(download), partial_(partial), on_bytes_(on_bytes) {}

  HttpResponse run(HttpClient& client) {
    std::vector<std::string> headers;
    const std::string tag = partial_.tag();
    if (partial_.size() > 0) headers.push_back(str("Range: bytes=", partial_.size(), "-"));
    if (partial_.size() > 0 && !tag.empty()) headers.push_back("If-Range: " + tag);
    return client.get(download_.url, headers, [&](const HttpResponse& head, std::string_view data) {
      if (!begun_ && !begin(head)) return false;
      begun_ = true;
      if (partial_.size() + std::ssize(data) > download_.size) {
        too_long_ = true;
        return false;
      }
      partial_.append(data);
      on_bytes_(partial_.size());
      return true;
    });
  }
  bool too_long() const { return too_long_; }

 private:
  // Continues where the server does, or from the beginning.  Returns false for a range that was not asked for.
  bool begin(const HttpResponse& head) {
    const bool continues =
        head.status == 206 && start_of_range(head.header("content-range"), download_.size) == partial_.size();
    if (!continues) partial_.clear();
    if (!continues && head.status == 206) return false;
    partial_.set_tag(head.header("etag"));
    return true;
  }

  const Download& download_;
  Partial& partial_;
  const std::function<void(int64_t)>& on_bytes_;
  bool begun_ = false, too_long_ = false;
};

// Receives until all bytes are there.  Tries without a new byte are limited.
void receive(HttpClient& client, const Download& download, Partial& partial,
             const std::function<void(int64_t)>& on_bytes) {
  for (int failures = 0; partial.size() < download.size;) {
    const int64_t before = partial.size();
    Attempt attempt(download, partial, on_bytes);
    const HttpResponse response = attempt.run(client);
    if (attempt.too_long()) {
      partial.clear();
      throw Error(download.file, str(download.size, " bytes, as the hub lists"), "more");
    }
    if (response.status == 416) {  // the partial file is of another version
      partial.clear();
    } else if (response.status >= 300) {
      throw_hub_error(response, client.settings(), download.repository, download.file);
    }
    failures = partial.size() > before ? 0 : failures + 1;
    if (partial.size() == download.size) return;
    if (failures == kMaxAttempts) {
      throw Error(str(download.file, ": the transfer stops at ", partial.size(), " of ", download.size, " bytes",
                      response.message.empty() ? "" : " (" + response.message + ")",
                      ". The next try continues there; HF_ENDPOINT names a mirror"));
    }
    if (failures > 0 || response.result != HttpResult::complete) wait_before_retry(failures);
  }
}

}  // namespace

void download(HttpClient& client, const Download& download, const std::function<void(int64_t)>& on_bytes) {
  Partial partial(download);
  on_bytes(partial.size());
  for (const bool again : {true, false}) {  // the first bytes may be of a former, wrong try
    receive(client, download, partial, on_bytes);
    if (partial.finish()) return;
    on_bytes(0);
    if (!again) break;
  }
  throw Error(download.file, "content with the digest " + download.blob.filename().string(),
              "other content, twice; it was deleted. Does a proxy change it? HF_ENDPOINT names a mirror");
}

int64_t partial_bytes(const fs::path& blob) {
  std::error_code missing;
  const auto size = fs::file_size(with_ending(blob, kPartial), missing);
  return missing ? 0 : static_cast<int64_t>(size);
}

bool is_partial_name(const std::string& name) {
  return name.ends_with(kPartial) || name.ends_with(kTag) || name.ends_with(".incomplete");
}

}  // namespace vitrail::hub
