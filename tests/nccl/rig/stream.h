// SPDX-License-Identifier: Apache-2.0
// Streams: a queue of jobs each, and a thread that runs them. A job's number within its
// stream, from 1, is all an event needs to remember.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>

namespace rig {
struct Stream;
using StreamP = std::shared_ptr<Stream>;

Stream* stream_create();
void stream_destroy(Stream*);
StreamP stream_ref(Stream*);  // null if destroyed; null, 1 and 2 are the default stream

// A Short job may run at once in the caller if the stream is idle.
enum class Job { Short, Blocking };
void submit(Stream*, Job, std::function<void()>);
void launch(Stream*, void* symbol, unsigned grid, unsigned block, const void* args,
            size_t args_size);

uint64_t stream_tip(Stream*);  // number of the last job submitted
bool stream_done(Stream*, uint64_t job);
void stream_wait(Stream*, uint64_t job);
void wait_all_streams();
}  // namespace rig
