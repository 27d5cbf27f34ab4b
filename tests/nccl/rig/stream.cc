// SPDX-License-Identifier: Apache-2.0
#include "stream.h"
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <vector>
#include "mem.h"
#include "rig.h"

namespace rig {
struct Stream {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;
  uint64_t submitted = 0, done = 0;
  bool has_worker = false, quit = false;
};

namespace {
std::mutex all_mutex;
std::map<Stream*, StreamP>& streams() {
  static auto* s = new std::map<Stream*, StreamP>;
  return *s;
}
std::vector<StreamP>& default_streams() {  // by device
  static auto* s = new std::vector<StreamP>;
  return *s;
}
std::atomic<rig_kernel_hook> hook;
std::atomic<uint64_t> launches;

// Holds a reference to its stream, so that a destroyed one still finishes.
void work(StreamP s, int dev) {
  set_device(dev);
  std::unique_lock<std::mutex> lock(s->mutex);
  for (;;) {
    s->changed.wait(lock, [&] { return !s->queue.empty() || s->quit; });
    if (s->queue.empty()) return;
    auto job = std::move(s->queue.front());
    s->queue.pop_front();
    lock.unlock();
    job();
    job = nullptr;
    lock.lock();
    s->done++;
    s->changed.notify_all();
  }
}

std::vector<StreamP> all_streams() {
  std::lock_guard<std::mutex> lock(all_mutex);
  std::vector<StreamP> all;
  for (auto& [key, s] : streams()) all.push_back(s);
  for (auto& s : default_streams())
    if (s) all.push_back(s);
  return all;
}

StreamP forget(Stream* stream) {
  std::lock_guard<std::mutex> lock(all_mutex);
  auto node = streams().extract(stream);
  return node ? node.mapped() : nullptr;
}
}  // namespace

StreamP stream_ref(Stream* stream) {
  std::lock_guard<std::mutex> lock(all_mutex);
  if ((uintptr_t)stream <= 2) {
    auto& defaults = default_streams();
    const size_t dev = current_device();
    if (defaults.size() <= dev) defaults.resize(dev + 1);
    if (!defaults[dev]) defaults[dev] = std::make_shared<Stream>();
    return defaults[dev];
  }
  auto it = streams().find(stream);
  return it == streams().end() ? nullptr : it->second;
}

Stream* stream_create() {
  auto s = std::make_shared<Stream>();
  std::lock_guard<std::mutex> lock(all_mutex);
  streams()[s.get()] = s;
  return s.get();
}

void stream_destroy(Stream* stream) {
  StreamP s = forget(stream);
  if (!s) return;
  std::lock_guard<std::mutex> lock(s->mutex);
  s->quit = true;
  s->changed.notify_all();
}

void submit(Stream* stream, Job kind, std::function<void()> job) {
  StreamP s = stream_ref(stream);
  if (!s) return;
  std::lock_guard<std::mutex> lock(s->mutex);
  const bool idle = s->done == s->submitted;
  s->submitted++;
  if (kind == Job::Short && idle) {
    job();
    s->done++;
    return;
  }
  if (!s->has_worker) std::thread(work, s, current_device()).detach();
  s->has_worker = true;
  s->queue.push_back(std::move(job));
  s->changed.notify_all();
}

uint64_t stream_tip(Stream* stream) {
  StreamP s = stream_ref(stream);
  if (!s) return 0;
  std::lock_guard<std::mutex> lock(s->mutex);
  return s->submitted;
}

bool stream_done(Stream* s, uint64_t job) {
  std::lock_guard<std::mutex> lock(s->mutex);
  return s->done >= job;
}

void stream_wait(Stream* s, uint64_t job) {
  std::unique_lock<std::mutex> lock(s->mutex);
  s->changed.wait(lock, [&] { return s->done >= job; });
}

void wait_all_streams() {
  for (auto& s : all_streams()) {
    std::unique_lock<std::mutex> lock(s->mutex);
    s->changed.wait(lock, [&, last = s->submitted] { return s->done >= last; });
  }
}

void launch(Stream* stream, void* symbol, unsigned grid, unsigned block, const void* args,
            size_t size) {
  launches++;
  const char* name = rig_symbol_at(symbol);
  rig_launch l{name ? name : "?", grid, block, nullptr, size};
  logf(2, "launch %s grid %u block %u args %zu", l.name, grid, block, size);
  // Aligned for the structures in it; the caller's copy is gone when the kernel runs.
  auto copy = std::make_shared<std::vector<std::max_align_t>>(size / sizeof(std::max_align_t) + 1);
  if (size) memcpy(copy->data(), args, size);
  submit(stream, Job::Blocking, [l, copy]() mutable {
    l.args = copy->data();
    if (rig_kernel_hook h = hook.load()) h(&l);
  });
}
}  // namespace rig

extern "C" {
void rig_set_kernel_hook(rig_kernel_hook h) { rig::hook = h; }
void rig_get_counters(rig_counters* c) {
  *c = {rig::launches.load(), rig::allocation_count(), rig_unsupported_count()};
}
}
