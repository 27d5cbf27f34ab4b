// SPDX-License-Identifier: Apache-2.0
// The C boundary: arguments are checked, exceptions and errors become statuses here.
#include "crosstie/crosstie.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <string>

#include "api/options.h"
#include "api/process.h"
#include "base/printable.h"
#include "config.h"
#include "runtime/communicator.h"
#include "settings.h"

using namespace crosstie;

struct crosstie_comm {
  std::unique_ptr<Communicator> communicator;
  pid_t owner = -1;  // a forked child shares its descriptors, and must leave them alone
};

struct crosstie_request {
  std::shared_ptr<Communicator::Request> request;
};

namespace {

thread_local std::string last_error;

crosstie_status_t status_of(Code code) {
  switch (code) {
    case Code::invalid:
      return CROSSTIE_ERR_INVALID;
    case Code::missing:
      return CROSSTIE_ERR_MISSING;
    case Code::io:
      return CROSSTIE_ERR_IO;
    case Code::timeout:
      return CROSSTIE_ERR_TIMEOUT;
    case Code::peer:
      return CROSSTIE_ERR_PEER;
    case Code::exhausted:
      return CROSSTIE_ERR_EXHAUSTED;
    case Code::unsupported:
      return CROSSTIE_ERR_UNSUPPORTED;
    case Code::internal:
      return CROSSTIE_ERR_INTERNAL;
  }
  return CROSSTIE_ERR_INTERNAL;
}

crosstie_status_t to_c(const Status& status) {
  if (status) return CROSSTIE_OK;
  last_error = printable(status.error().text);
  return status_of(status.error().code);
}

// No exception crosses the boundary.
template <class F>
crosstie_status_t guarded(F&& body) noexcept {
  try {
    return to_c(body());
  } catch (const std::bad_alloc&) {
    return to_c(fail(Code::exhausted, "out of memory"));
  } catch (const std::exception& error) {
    return to_c(fail(Code::internal, "unexpected: {}", error.what()));
  }
}

// What the caller's structure has, and defaults for what its older header did not know. What a
// newer header knows more must be at its default, zero.
template <class T>
Result<T> complete(const T* given, T defaults, const char* what) {
  if (!given) return defaults;
  const auto* bytes = reinterpret_cast<const char*>(given);
  constexpr size_t kMost = 4096;  // no structure of ours will be so large: it is no size
  if (given->size < sizeof(size_t) || given->size > kMost)
    return fail(Code::invalid, "{}.size is {}; begin with its INIT macro", what, given->size);
  for (size_t i = sizeof(T); i < given->size; i++)
    if (bytes[i] != 0)
      return fail(Code::unsupported, "{} asks for what this library does not know yet", what);
  memcpy(&defaults, given, std::min(given->size, sizeof(T)));
  return defaults;
}

void warn_of_unknown(const Environment& environment, const Log& log) {
  const auto known = all_options();
  for (const Unknown& unknown : unknown_variables(known, environment))
    log.warn("{}", to_text(unknown));
}

Status override_by(RuntimeOptions& options, const crosstie_config_t& config) {
  if ((config.rank < 0) != (config.ranks < 0))
    return fail(Code::invalid, "config has rank {} of {} ranks; give both or neither", config.rank,
                config.ranks);
  if (config.rank >= 0) options.rank = config.rank, options.ranks = config.ranks;
  if (config.address) options.address = config.address;
  if (config.host) options.host = config.host;
  return {};
}

Result<std::unique_ptr<Communicator>> create(const crosstie_config_t* given) {
  const auto config = complete(given, crosstie_config_t CROSSTIE_CONFIG_INIT, "crosstie_config_t");
  if (!config) return pass(config);
  const Environment environment = Environment::of_process();
  const auto library = read_options<LibraryOptions>(kLibraryOptions, environment);
  if (!library) return pass(library);
  auto runtime = read_options<RuntimeOptions>(kRuntimeOptions, environment);
  if (!runtime) return pass(runtime);
  const auto transport = read_options<TransportOptions>(kTransportRows, environment);
  if (!transport) return pass(transport);
  const auto overridden = override_by(*runtime, *config);
  if (!overridden) return pass(overridden);
  const auto job = find_job(*runtime, environment);
  if (!job) return pass(job);
  Log log = stderr_log(library->log);
  if (job->rank == 0) warn_of_unknown(environment, log);
  auto thread = library_thread();
  if (!thread) return pass(thread);
  return Communicator::create(*job, *runtime, *transport, std::move(*thread), std::move(log));
}

Result<DataType> type_of(crosstie_type_t type) {
  switch (type) {
    case CROSSTIE_F32:
      return DataType::f32;
    case CROSSTIE_U64:
      return DataType::u64;
    default:
      break;
  }
  return fail(Code::invalid, "type {} is none of crosstie_type_t", static_cast<int>(type));
}

Status set_call(AllReduceCall& call, const crosstie_call_t* given) {
  const auto c = complete(given, crosstie_call_t CROSSTIE_CALL_INIT, "crosstie_call_t");
  if (!c) return pass(c);
  if (c->algorithm) {
    call.algorithm = word<Algorithm>(c->algorithm);
    if (!call.algorithm) return fail(Code::invalid, "there is no algorithm '{}'", c->algorithm);
  }
  if (c->stream) return fail(Code::unsupported, "call.stream: only host memory works yet");
  if (c->traffic_class < 0 || c->traffic_class > CROSSTIE_CLASS_CONTROL)
    return fail(Code::invalid, "class {} is none of crosstie_class_t",
                static_cast<int>(c->traffic_class));
  if (c->check != 0 && c->check != 1) return fail(Code::invalid, "call.check is {}", c->check);
  call.traffic_class = static_cast<TrafficClass>(c->traffic_class);  // in the same order
  call.check = c->check == 1;
  if (!(c->timeout >= 0 && c->timeout < 1e9))
    return fail(Code::invalid, "a timeout of {} seconds makes no sense", c->timeout);
  if (c->timeout > 0) call.timeout = std::chrono::nanoseconds(std::llround(c->timeout * 1e9));
  return {};
}

Result<AllReduceCall> make_call(const void* in, void* out, size_t count, crosstie_type_t type,
                                const crosstie_call_t* given) {
  const auto element = type_of(type);
  if (!element) return pass(element);
  if (count > SIZE_MAX / 2 / size_of(*element))
    return fail(Code::invalid, "{} elements are more than memory holds", count);
  AllReduceCall call{in, out, count, *element, {}, {}, {}, {}};
  const auto set = set_call(call, given);
  if (!set) return pass(set);
  return call;
}

Status check_owner(const crosstie_comm_t* comm) {
  if (!comm) return fail(Code::invalid, "comm must not be NULL");
  if (comm->owner == getpid()) return {};
  return fail(Code::invalid, "the communicator belongs to process {}, of which this is a child",
              comm->owner);
}

Status check_buffers(const AllReduceCall& call) {
  if (call.count == 0) return {};
  if (!call.in || !call.out) return fail(Code::invalid, "in and out must not be NULL");
  const auto in = reinterpret_cast<uintptr_t>(call.in), out = reinterpret_cast<uintptr_t>(call.out);
  if ((in | out) % size_of(call.type) != 0)
    return fail(Code::invalid, "in and out must be aligned to their elements, of {} bytes",
                size_of(call.type));
  const size_t bytes = call.count * size_of(call.type);
  if (in != out && std::max(in, out) - std::min(in, out) < bytes)
    return fail(Code::invalid, "in and out overlap; they must be equal or apart");
  return {};
}

Status allreduce(crosstie_comm_t* comm, const void* in, void* out, size_t count,
                 crosstie_type_t type, crosstie_op_t op, const crosstie_call_t* given,
                 crosstie_request_t** request) {
  const auto own = check_owner(comm);
  if (!own) return own;
  if (op != CROSSTIE_SUM)
    return fail(Code::invalid, "operation {} is none of crosstie_op_t", static_cast<int>(op));
  const auto call = make_call(in, out, count, type, given);
  if (!call) return pass(call);
  const auto checked = check_buffers(*call);
  if (!checked) return checked;
  auto handle = std::make_unique<crosstie_request_t>();
  const auto begun = comm->communicator->all_reduce(*call, handle->request);
  if (!begun) return begun;
  if (!request) {
    comm->communicator->wait(*handle->request);
    return handle->request->status;
  }
  comm->communicator->hand_over();
  *request = handle.release();
  return {};
}

Status end(crosstie_request_t** request) {
  const Status status = (*request)->request->status;
  delete std::exchange(*request, nullptr);
  return status;
}

}  // namespace

extern "C" {

void crosstie_version(int* major, int* minor, int* patch) {
  if (major) *major = CROSSTIE_VERSION_MAJOR;
  if (minor) *minor = CROSSTIE_VERSION_MINOR;
  if (patch) *patch = CROSSTIE_VERSION_PATCH;
}

const char* crosstie_status_string(crosstie_status_t status) {
  switch (status) {
    case CROSSTIE_OK:
      return "ok";
    case CROSSTIE_ERR_INVALID:
      return "invalid argument";
    case CROSSTIE_ERR_MISSING:
      return "missing";
    case CROSSTIE_ERR_IO:
      return "system error";
    case CROSSTIE_ERR_TIMEOUT:
      return "timeout";
    case CROSSTIE_ERR_PEER:
      return "peer failed";
    case CROSSTIE_ERR_EXHAUSTED:
      return "out of resources";
    case CROSSTIE_ERR_UNSUPPORTED:
      return "unsupported";
    case CROSSTIE_ERR_INTERNAL:
      return "internal error";
  }
  return "unknown status";
}

const char* crosstie_last_error(void) { return last_error.c_str(); }

crosstie_status_t crosstie_comm_create(crosstie_comm_t** comm, const crosstie_config_t* config) {
  return guarded([&]() -> Status {
    if (!comm) return fail(Code::invalid, "comm must not be NULL");
    auto made = create(config);
    if (!made) return pass(made);
    *comm = new crosstie_comm_t{std::move(*made), getpid()};
    return {};
  });
}

void crosstie_comm_destroy(crosstie_comm_t* comm) {
  if (comm && comm->owner != getpid()) static_cast<void>(comm->communicator.release());
  delete comm;
}

int crosstie_comm_rank(const crosstie_comm_t* comm) {
  return comm ? comm->communicator->team().rank() : -1;
}
int crosstie_comm_ranks(const crosstie_comm_t* comm) {
  return comm ? comm->communicator->team().ranks() : -1;
}
int crosstie_comm_hosts(const crosstie_comm_t* comm) {
  return comm ? static_cast<int>(comm->communicator->team().shape()->hosts().size()) : -1;
}

crosstie_status_t crosstie_comm_traffic(crosstie_comm_t* comm, crosstie_traffic_t* traffic) {
  return guarded([&]() -> Status {
    if (!comm || !traffic) return fail(Code::invalid, "comm and traffic must not be NULL");
    const LinkTraffic counted = comm->communicator->traffic();
    *traffic = {counted.inside_bytes, counted.across_bytes};
    return {};
  });
}

crosstie_status_t crosstie_allreduce(crosstie_comm_t* comm, const void* in, void* out, size_t count,
                                     crosstie_type_t type, crosstie_op_t op,
                                     const crosstie_call_t* call, crosstie_request_t** request) {
  return guarded([&] { return allreduce(comm, in, out, count, type, op, call, request); });
}

crosstie_status_t crosstie_test(crosstie_request_t** request, int* done) {
  return guarded([&]() -> Status {
    if (!request || !done) return fail(Code::invalid, "request and done must not be NULL");
    *done = 1;
    if (!*request) return {};
    Communicator::Request& own = *(*request)->request;
    *done = own.communicator->test(own);
    return *done ? end(request) : Status{};
  });
}

crosstie_status_t crosstie_wait(crosstie_request_t** request) {
  return guarded([&]() -> Status {
    if (!request) return fail(Code::invalid, "request must not be NULL");
    if (!*request) return {};
    Communicator::Request& own = *(*request)->request;
    own.communicator->wait(own);
    return end(request);
  });
}

crosstie_status_t crosstie_allreduce_traffic(crosstie_comm_t* comm, size_t count,
                                             crosstie_type_t type, const crosstie_call_t* call,
                                             crosstie_traffic_t* traffic, const char** algorithm) {
  return guarded([&]() -> Status {
    if (!traffic) return fail(Code::invalid, "traffic must not be NULL");
    const auto owned = check_owner(comm);
    if (!owned) return owned;
    const auto own = make_call(nullptr, nullptr, count, type, call);
    if (!own) return pass(own);
    const auto forecast = comm->communicator->forecast(*own);
    if (!forecast) return pass(forecast);
    *traffic = {forecast->traffic.inside_bytes, forecast->traffic.across_bytes};
    if (algorithm) *algorithm = name(forecast->algorithm).data();
    return {};
  });
}
}
