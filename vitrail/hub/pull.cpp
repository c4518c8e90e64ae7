// SPDX-License-Identifier: Apache-2.0
// Downloads the files of a model.
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "vitrail/base/atomic_file.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/hub/blob_digest_internal.h"
#include "vitrail/hub/download_internal.h"
#include "vitrail/hub/download_lock_internal.h"
#include "vitrail/hub/file_list_internal.h"
#include "vitrail/hub/hub.h"
#include "vitrail/hub/snapshot_internal.h"
#include "vitrail/weights/hub_layout.h"

namespace vitrail::hub {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;

constexpr size_t kMaxReplyBytes = 64 << 20;

std::mutex mutex;  // guards installed_callback
TransferCallback installed_callback;

TransferCallback transfer_callback() {
  const std::lock_guard lock(mutex);
  return installed_callback;
}

// A revision may have slashes, which would be taken for parts of the URL's path.
std::string url_part(const std::string& text) {
  std::string encoded;
  for (const char c : text) encoded += c == '/' ? "%2F" : c == '+' ? "%2B" : std::string(1, c);
  return encoded;
}

std::string url_path(const std::string& path) {
  std::string encoded;
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-_./~").find(c) != std::string_view::npos;
    const auto byte = static_cast<unsigned char>(c);
    encoded += plain ? std::string(1, c) : str('%', "0123456789ABCDEF"[byte >> 4], "0123456789ABCDEF"[byte & 15]);
  }
  return encoded;
}

std::string human_bytes(int64_t bytes) { return str((bytes + 999'999) / 1'000'000, " MB"); }

// The URL in <…> of the header "Link: <URL>; rel="next"", for lists of several pages.
std::string next_page(const HttpResponse& response, const std::string& endpoint) {
  const std::string links = response.header("link");  // RFC 8288: <URL>; rel="next", <URL>; rel="last"
  for (size_t begin = links.find('<'); begin != links.npos;) {
    const size_t end = links.find('>', begin), following = links.find('<', end);
    if (end == links.npos) return "";
    const std::string url = links.substr(begin + 1, end - begin - 1);
    if (links.substr(end, following - end).find("rel=\"next\"") != links.npos)
      return origin_of(url) == origin_of(endpoint) ? url : "";
    begin = following;
  }
  return "";
}

class Pull {
 public:
  Pull(const ModelName& name, const Settings& settings)
      : name_(name), client_(settings), layout_(settings.cache, name.repository), callback_(transfer_callback()) {}

  fs::path run() {
    commit_ = resolve();
    list();
    create_folders(layout_.blobs());
    write_cache_tag();
    const DownloadLock lock(layout_.lock(kPullLock), to_string(name_));
    const std::string weights = chosen_weights();
    std::vector<std::string> needed;
    for (const auto& [path, file] : files_) {
      if (is_needed_beside_weights(path)) needed.push_back(path);
    }
    if (!weights.ends_with(".json")) {
      needed.push_back(weights);
    } else {  // the shards are known when their index is there
      get({weights});
      for (const std::string& shard : weights::shard_names(layout_.snapshot(commit_) / weights))
        needed.push_back(shard);
    }
    get(needed);
    write_tree(layout_, commit_, files_);
    write_ref();
    return layout_.snapshot(commit_);
  }

 private:
  const Settings& settings() const { return client_.settings(); }

  HttpResponse request(const std::string& url) {
    HttpResponse response = client_.get(url, kMaxReplyBytes);
    if (response.status >= 300) throw_hub_error(response, settings(), name_.repository, to_string(name_));
    return response;
  }

  // The commit that the revision stands for now: all files are taken from it.
  std::string resolve() {
    const std::string url =
        settings().endpoint + "/api/models/" + name_.repository + "/revision/" + url_part(name_.revision);
    const json reply = json::parse(request(url).body, nullptr, false);
    const std::string commit = reply.is_object() ? reply.value("sha", json()).dump() : "";
    constexpr size_t kDigits = 40;
    if (commit.size() == kDigits + 2 && is_hex(commit.substr(1, kDigits), kDigits)) return commit.substr(1, kDigits);
    throw Error(url, "the commit of the model in \"sha\"", reply.is_discarded() ? "no JSON" : "none");
  }

  // A commit does not change, so that the cache's list of it holds.
  void list() {
    if (auto tree = read_tree(layout_, commit_)) {
      files_ = std::move(*tree);
      return;
    }
    constexpr int kMaxPages = 1000;
    std::string url = settings().endpoint + "/api/models/" + name_.repository + "/tree/" + commit_ + "?recursive=true";
    for (int page = 0; !url.empty() && page < kMaxPages; ++page) {
      const HttpResponse response = request(url);
      add_listed_files(response.body, url, files_);
      url = next_page(response, settings().endpoint);
    }
  }

  std::string chosen_weights() const {
    std::vector<std::string> names;
    for (const auto& [path, file] : files_) {
      if (path.find('/') != path.npos) continue;
      names.push_back(path);
    }
    if (const std::string weights = weights::choose_weights(names); !weights.empty()) return weights;
    throw Error(to_string(name_), "a model with model.safetensors, its index, or pytorch_model.bin",
                names.empty() ? "no files" : "one with " + join(names).substr(0, 400));
  }

  // Downloads what is missing and links it into the snapshot.
  void get(const std::vector<std::string>& paths) {
    std::vector<std::string> missing;
    for (const std::string& path : paths) {
      if (!files_.contains(path)) throw Error(to_string(name_), "the shard " + path + " among its files", "none");
      if (!is_in_snapshot(layout_, commit_, path, files_.at(path)) && !has_blob(layout_, files_.at(path)))
        missing.push_back(path);
    }
    require_space(missing);
    transfer_ = {};
    for (const std::string& path : missing) transfer_.total += files_.at(path).size;
    for (const std::string& path : missing) download_file(path);
    for (const std::string& path : paths) {
      add_to_snapshot(layout_, commit_, path, files_.at(path), settings().symlinks);
    }
  }

  void require_space(const std::vector<std::string>& missing) const {
    int64_t bytes = 0;
    for (const std::string& path : missing) {
      bytes += files_.at(path).size - partial_bytes(layout_.blobs() / files_.at(path).etag());
    }
    std::error_code unknown;
    const fs::space_info space = fs::space(layout_.blobs(), unknown);
    if (unknown || bytes <= 0 || static_cast<uint64_t>(bytes) <= space.available) return;
    throw Error(layout_.cache().string(), human_bytes(bytes) + " of free space for " + to_string(name_),
                human_bytes(static_cast<int64_t>(space.available)) +
                    "; HF_HUB_CACHE names another folder, and vitrail cache prune deletes what is not used");
  }

  void download_file(const std::string& path) {
    const HubFile& file = files_.at(path);
    const fs::path blob = layout_.blobs() / file.etag();
    const std::string what = to_string(name_) + ": " + path;
    const DownloadLock lock(layout_.lock(file.etag()), what);
    const int64_t before = transfer_.done;
    if (!has_blob(layout_, file)) {  // else another process has just downloaded it
      const std::string url =
          settings().endpoint + "/" + name_.repository + "/resolve/" + commit_ + "/" + url_path(path);
      download(client_, {url, what, name_.repository, blob, file.size}, [&](int64_t bytes) {
        transfer_ = {path, before + bytes, transfer_.total};
        if (callback_) callback_(transfer_);
      });
    }
    transfer_.done = before + file.size;
  }

  void write_cache_tag() const {
    const fs::path tag = layout_.cache() / "CACHEDIR.TAG";
    std::error_code unknown;
    if (fs::exists(tag, unknown)) return;
    AtomicFile file(tag);
    file.write(std::string("Signature: 8a477f597d28d172789f06886806bc55\n# A cache of models of the hub.\n"));
    file.commit();
  }

  // The last step, so that a revision always names a complete snapshot.
  void write_ref() const {
    if (name_.revision == commit_) return;
    const fs::path ref = layout_.ref(name_.revision);
    create_folders(ref.parent_path());
    AtomicFile file(ref);
    file.write(commit_);
    file.commit();
  }

  ModelName name_;
  HttpClient client_;
  Layout layout_;
  TransferCallback callback_;
  std::string commit_;
  FileList files_;
  Transfer transfer_;
};

}  // namespace

TransferCallback set_transfer_callback(TransferCallback callback) {
  const std::lock_guard lock(mutex);
  return std::exchange(installed_callback, std::move(callback));
}

fs::path pull(const ModelName& name) {
  const Settings settings = settings_from_environment();
  if (settings.offline) {
    if (const auto folder = find_cached(name)) return *folder;
    throw Error(to_string(name), "a complete model in " + settings.cache.string() + ", because HF_HUB_OFFLINE is set",
                "none; vitrail pull " + to_string(name) + " brings it there when HF_HUB_OFFLINE is not set");
  }
  return Pull(name, settings).run();
}

}  // namespace vitrail::hub
