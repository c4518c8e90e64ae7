// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counts how often files are opened.
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <map>
#include <vector>

namespace vitrail::testing {

// How often `work` opens each file and folder below `root`.  Opens without a close between them count once.
inline std::map<std::filesystem::path, int> count_opens(const std::filesystem::path& root,
                                                        const std::function<void()>& work) {
  std::vector<std::filesystem::path> folders{root};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.is_directory()) folders.push_back(entry.path());
  }
  const int queue = ::inotify_init1(IN_NONBLOCK);
  std::map<int, std::filesystem::path> watched;
  for (const auto& folder : folders) watched[::inotify_add_watch(queue, folder.c_str(), IN_OPEN | IN_CLOSE)] = folder;
  EXPECT_EQ(watched.size(), folders.size()) << "folders that are watched";
  work();
  std::map<std::filesystem::path, int> counts;
  alignas(inotify_event) char events[1 << 16];
  for (ssize_t size = 0; (size = ::read(queue, events, sizeof events)) > 0;) {
    for (const char* at = events; at < events + size;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      if ((event->mask & IN_OPEN) != 0 && event->len > 0) ++counts[watched[event->wd] / event->name];
      at += sizeof(inotify_event) + event->len;
    }
  }
  ::close(queue);
  return counts;
}

}  // namespace vitrail::testing
