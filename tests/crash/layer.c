/* A layer between a process and its file system: counts, kills, fails, forgets, records and slows file-system calls.

   It is compiled by tests/crash/layer.py and loaded with LD_PRELOAD. Only calls on paths below one root are touched.
   A process arms it through layer_arm (by ctypes, after a fork), or from the environment: LAYER_ROOT and
   LAYER_SYNC_MICROSECONDS make every fsync and fdatasync below the root wait, as on a slow disk.

   Counted calls, each with a letter:

       o open, creat    r read, pread    w write, pwrite, writev    s fsync, fdatasync    t truncate, ftruncate
       n rename    l link    u unlink, rmdir    m mkdir    k flock, fcntl (locking, not unlocking)    c close

   Modes, at the n-th counted call (and at every later one, if `forever`):

       COUNT   nothing happens; layer_trace tells which calls there were
       KILL    SIGKILL before the call            HALF   SIGKILL after half of a write (before any other call)
       AFTER   SIGKILL after the call             FAIL   the call fails with a given errno
       LIE     the call does nothing and says that it succeeded: a disk that loses writes

   Independently of the mode, a log outside the root records everything that changes the files, so that power cuts can
   be simulated. A sync is recorded twice, when it begins and when it ends: what was written before it began is on the
   disk when it has ended. The log's lock is held while a call changes a file, so the log of several processes is in the
   order of the changes, but not while a sync waits. While a log is kept the process lives in another boot: it reads the
   id of the boot from a file beside the log, since after a power cut the machine has another one.

   Two things are not seen: the shared-memory index of SQLite's log (`-shm`), which is written through mmap and is
   rebuilt after a crash, and files written through stdio inside libc (fopen), which the ledger does not use. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OFF, COUNT, KILL, HALF, AFTER, FAIL, LIE };
enum { GO_ON, HALVE, THEN_DIE, REFUSE, PRETEND };
enum { MOST = 4096, NAME = 40 };

static const char BOOT_ID[] = "/proc/sys/kernel/random/boot_id";

static struct {
    char root[1024], boot[1024];
    size_t length;
    int mode, error, forever, dry, log;
    long at, count, wait;
    char kinds[32];
} layer = {.log = -1};

static char names[MOST][NAME]; /* of the descriptors that are watched; empty: not watched */
static char trace[1 << 20];
static size_t traced;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

/* Which paths and descriptors are watched. */

static const char *absolute(int folder, const char *path, char *room, size_t size) {
    if (path == NULL || path[0] == '/') return path;
    char base[1024];
    if (folder == AT_FDCWD) {
        if (getcwd(base, sizeof base) == NULL) return path;
    } else {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t found = readlink(link, base, sizeof base - 1);
        if (found < 0) return path;
        base[found] = 0;
    }
    snprintf(room, size, "%s/%s", base, path);
    return room;
}

static int ends(const char *path, const char *end) {
    size_t a = strlen(path), b = strlen(end);
    return a >= b && strcmp(path + a - b, end) == 0;
}

static int below(const char *path) {
    if (layer.length == 0 || path == NULL || strncmp(path, layer.root, layer.length) != 0) return 0;
    return (path[layer.length] == '/' || path[layer.length] == 0) && !ends(path, "-shm");
}

static const char *base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static int watched(int fd) { return fd >= 0 && fd < MOST && names[fd][0] != 0; }

static void watch(int fd, const char *path) {
    if (fd < 0 || fd >= MOST) return;
    names[fd][0] = 0;
    if (below(path)) snprintf(names[fd], NAME, "%s", base_of(path));
}

/* What happens at a call. */

static _Noreturn void die(void) {
    for (;;) {
        kill(getpid(), SIGKILL);
        pause();
    }
}

static int step(char kind, const char *name) {
    if (layer.mode == OFF || strchr(layer.kinds, kind) == NULL) return GO_ON;
    long number = __atomic_add_fetch(&layer.count, 1, __ATOMIC_SEQ_CST);
    if (layer.mode == COUNT) {
        if (traced + NAME + 4 < sizeof trace) traced += (size_t)sprintf(trace + traced, "%c %s\n", kind, name);
        return GO_ON;
    }
    if (number != layer.at && !(layer.forever && number > layer.at)) return GO_ON;
    switch (layer.mode) {
    case HALF: return kind == 'w' ? HALVE : (die(), GO_ON);
    case AFTER: return THEN_DIE;
    case FAIL: errno = layer.error; return REFUSE;
    case LIE: return PRETEND;
    default: die();
    }
}

static void done(int what) {
    if (what == THEN_DIE || what == HALVE) die();
}

/* The log: a header, two paths, data. */

struct event {
    uint32_t kind, pid;
    uint64_t inode, offset, length;
    uint32_t first, second, data, unused;
};

static void lock_log(void) {
    if (layer.log < 0) return;
    pthread_mutex_lock(&turn);
    while (syscall(SYS_flock, layer.log, LOCK_EX) < 0 && errno == EINTR) {}
}

static void unlock_log(void) {
    if (layer.log < 0) return;
    int kept = errno;
    syscall(SYS_flock, layer.log, LOCK_UN);
    pthread_mutex_unlock(&turn);
    errno = kept;
}

static void put(const void *data, size_t size) {
    const char *from = data;
    while (size > 0) {
        ssize_t written = syscall(SYS_write, layer.log, from, size);
        if (written <= 0) abort();
        from += written;
        size -= (size_t)written;
    }
}

static void record(char kind, uint64_t inode, uint64_t offset, uint64_t length, const char *first, const char *second,
                   const void *data, size_t size) {
    if (layer.log < 0) return;
    int kept = errno;
    struct event event = {(uint32_t)kind,
                          (uint32_t)getpid(),
                          inode,
                          offset,
                          length,
                          first == NULL ? 0 : (uint32_t)strlen(first),
                          second == NULL ? 0 : (uint32_t)strlen(second),
                          (uint32_t)size,
                          0};
    put(&event, sizeof event);
    put(first, event.first);
    put(second, event.second);
    put(data, size);
    errno = kept;
}

static uint64_t inode_of(int fd) {
    struct stat found;
    int kept = errno;
    uint64_t inode = fstat(fd, &found) == 0 ? (uint64_t)found.st_ino : 0;
    errno = kept;
    return inode;
}

/* For the processes under test. */

void layer_arm(const char *root, const char *kinds, int mode, long at, int forever, int error, int dry, long wait,
               const char *log) {
    memset(names, 0, sizeof names);
    traced = 0;
    trace[0] = 0;
    snprintf(layer.root, sizeof layer.root, "%s", root);
    layer.length = strlen(layer.root);
    snprintf(layer.kinds, sizeof layer.kinds, "%s", kinds);
    layer.at = at;
    layer.count = 0;
    layer.forever = forever;
    layer.error = error;
    layer.dry = dry;
    layer.wait = wait;
    layer.log = log == NULL ? -1
                            : (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (log != NULL && layer.log < 0) abort();
    snprintf(layer.boot, sizeof layer.boot, "%s.boot", log == NULL ? "" : log);
    layer.mode = mode;
}

void layer_disarm(void) { layer.mode = OFF; }

long layer_count(void) { return layer.count; }

const char *layer_trace(void) { return trace; }

void layer_note(const char *text, size_t size) {
    lock_log();
    record('N', 0, 0, 0, NULL, NULL, text, size);
    unlock_log();
}

__attribute__((constructor)) static void from_environment(void) {
    const char *root = getenv("LAYER_ROOT"), *wait = getenv("LAYER_SYNC_MICROSECONDS");
    if (root != NULL && wait != NULL) layer_arm(root, "", OFF, 0, 0, 0, getenv("LAYER_DRY") != NULL, atol(wait), NULL);
}

/* Opening and closing. */

static int opened(int folder, const char *path, int flags, mode_t mode) {
    char room[2048];
    const char *full = absolute(folder, path, room, sizeof room);
    if (layer.log >= 0 && full != NULL && strcmp(full, BOOT_ID) == 0) path = layer.boot;
    if (!below(full)) {
        int fd = (int)syscall(SYS_openat, folder, path, flags, mode);
        watch(fd, "");
        return fd;
    }
    int what = step('o', base_of(full));
    if (what == REFUSE) return -1;
    lock_log();
    struct stat before;
    int there = stat(full, &before) == 0;
    int fd = (int)syscall(SYS_openat, folder, path, flags, mode);
    if (fd >= 0 && !there) record('C', inode_of(fd), 0, 0, full, NULL, NULL, 0);
    if (fd >= 0 && there && (flags & O_TRUNC) && before.st_size > 0) record('T', inode_of(fd), 0, 0, NULL, NULL, NULL, 0);
    unlock_log();
    watch(fd, full);
    done(what);
    return fd;
}

#define OPENS(name)                                                                                                    \
    int name(const char *path, int flags, ...) {                                                                       \
        va_list more;                                                                                                  \
        va_start(more, flags);                                                                                         \
        mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(more, mode_t) : 0;                                      \
        va_end(more);                                                                                                  \
        return opened(AT_FDCWD, path, flags, mode);                                                                    \
    }
OPENS(open)
OPENS(open64)

#define OPENS_AT(name)                                                                                                 \
    int name(int folder, const char *path, int flags, ...) {                                                           \
        va_list more;                                                                                                  \
        va_start(more, flags);                                                                                         \
        mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(more, mode_t) : 0;                                      \
        va_end(more);                                                                                                  \
        return opened(folder, path, flags, mode);                                                                      \
    }
OPENS_AT(openat)
OPENS_AT(openat64)

int __open_2(const char *path, int flags) { return opened(AT_FDCWD, path, flags, 0); }
int __open64_2(const char *path, int flags) { return opened(AT_FDCWD, path, flags, 0); }
int creat(const char *path, mode_t mode) { return opened(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

int close(int fd) {
    int what = watched(fd) ? step('c', names[fd]) : GO_ON;
    if (fd >= 0 && fd < MOST) names[fd][0] = 0;
    int result = (int)syscall(SYS_close, fd);
    if (what == REFUSE) {
        errno = layer.error;
        return -1;
    }
    done(what);
    return result;
}

static int twin(int from, int to) {
    if (to >= 0 && to < MOST) {
        if (watched(from)) memcpy(names[to], names[from], NAME);
        else names[to][0] = 0;
    }
    return to;
}

int dup(int fd) { return twin(fd, (int)syscall(SYS_dup, fd)); }

/* Reading. */

#define READS(name, call, offset_type)                                                                                 \
    ssize_t name(int fd, void *into, size_t size, offset_type offset) {                                                \
        int what = watched(fd) ? step('r', names[fd]) : GO_ON;                                                         \
        if (what == REFUSE) return -1;                                                                                 \
        ssize_t result = syscall(call, fd, into, size, offset);                                                        \
        done(what);                                                                                                    \
        return result;                                                                                                 \
    }
READS(pread, SYS_pread64, off_t)
READS(pread64, SYS_pread64, off64_t)

ssize_t read(int fd, void *into, size_t size) {
    int what = watched(fd) ? step('r', names[fd]) : GO_ON;
    if (what == REFUSE) return -1;
    ssize_t result = syscall(SYS_read, fd, into, size);
    done(what);
    return result;
}

/* Writing. */

static ssize_t written(int fd, const void *from, size_t size, off_t offset, int positioned) {
    if (!watched(fd)) return syscall(positioned ? SYS_pwrite64 : SYS_write, fd, from, size, offset);
    int what = step('w', names[fd]);
    if (what == REFUSE) return -1;
    if (what == PRETEND) return (ssize_t)size;
    if (what == HALVE) size /= 2;
    lock_log();
    ssize_t result = syscall(positioned ? SYS_pwrite64 : SYS_write, fd, from, size, offset);
    if (result > 0) {
        off_t where = positioned ? offset : lseek(fd, 0, SEEK_CUR) - result;
        record('W', inode_of(fd), (uint64_t)where, 0, NULL, NULL, from, (size_t)result);
    }
    unlock_log();
    done(what);
    return result;
}

ssize_t write(int fd, const void *from, size_t size) { return written(fd, from, size, 0, 0); }
ssize_t pwrite(int fd, const void *from, size_t size, off_t offset) { return written(fd, from, size, offset, 1); }
ssize_t pwrite64(int fd, const void *from, size_t size, off64_t offset) { return written(fd, from, size, offset, 1); }

ssize_t writev(int fd, const struct iovec *parts, int count) {
    if (!watched(fd)) return syscall(SYS_writev, fd, parts, count);
    ssize_t sum = 0;
    for (int i = 0; i < count; i++) {
        ssize_t result = written(fd, parts[i].iov_base, parts[i].iov_len, 0, 0);
        if (result < 0) return sum > 0 ? sum : result;
        sum += result;
        if ((size_t)result < parts[i].iov_len) break;
    }
    return sum;
}

static int truncated(int fd, off_t length) {
    if (!watched(fd)) return (int)syscall(SYS_ftruncate, fd, length);
    int what = step('t', names[fd]);
    if (what == REFUSE) return -1;
    if (what == PRETEND) return 0;
    lock_log();
    int result = (int)syscall(SYS_ftruncate, fd, length);
    if (result == 0) record('T', inode_of(fd), 0, (uint64_t)length, NULL, NULL, NULL, 0);
    unlock_log();
    done(what);
    return result;
}

int ftruncate(int fd, off_t length) { return truncated(fd, length); }
int ftruncate64(int fd, off64_t length) { return truncated(fd, length); }

static int truncated_by_name(const char *path, off_t length) {
    char room[2048];
    if (!below(absolute(AT_FDCWD, path, room, sizeof room))) return (int)syscall(SYS_truncate, path, length);
    int fd = opened(AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
    if (fd < 0) return -1;
    int result = truncated(fd, length);
    close(fd);
    return result;
}

int truncate(const char *path, off_t length) { return truncated_by_name(path, length); }
int truncate64(const char *path, off64_t length) { return truncated_by_name(path, length); }

/* Syncing. */

static int synced(int fd, long call) {
    if (!watched(fd)) return (int)syscall(call, fd);
    int what = step('s', names[fd]);
    if (what == REFUSE) return -1;
    if (what == PRETEND) return 0;
    uint64_t inode = inode_of(fd);
    lock_log();
    record('B', inode, 0, 0, NULL, NULL, NULL, 0);
    unlock_log();
    if (layer.wait > 0) usleep((useconds_t)layer.wait);
    int result = layer.dry ? 0 : (int)syscall(call, fd);
    lock_log();
    if (result == 0) record('E', inode, 0, 0, NULL, NULL, NULL, 0);
    unlock_log();
    done(what);
    return result;
}

int fsync(int fd) { return synced(fd, SYS_fsync); }
int fdatasync(int fd) { return synced(fd, SYS_fdatasync); }

/* Names. */

static int two_names(char kind, long call, int one, const char *from, int other, const char *to, int flags) {
    char first[2048], second[2048];
    const char *a = absolute(one, from, first, sizeof first), *b = absolute(other, to, second, sizeof second);
    int seen = below(a) || below(b), what = seen ? step(kind, base_of(b)) : GO_ON;
    if (what == REFUSE) return -1;
    if (what == PRETEND) return 0;
    if (seen) lock_log();
    int result = (int)syscall(call, one, from, other, to, flags);
    if (seen && result == 0) record(kind, 0, 0, 0, a, b, NULL, 0);
    if (seen) unlock_log();
    done(what);
    return result;
}

int rename(const char *from, const char *to) { return two_names('n', SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int a, const char *from, int b, const char *to) { return two_names('n', SYS_renameat2, a, from, b, to, 0); }
int link(const char *from, const char *to) { return two_names('l', SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0); }
int linkat(int a, const char *from, int b, const char *to, int flags) {
    return two_names('l', SYS_linkat, a, from, b, to, flags);
}

static int one_name(char kind, long call, int folder, const char *path, int argument) {
    char room[2048];
    const char *full = absolute(folder, path, room, sizeof room);
    int seen = below(full), what = seen ? step(kind, base_of(full)) : GO_ON;
    if (what == REFUSE) return -1;
    if (what == PRETEND) return 0;
    if (seen) lock_log();
    int result = (int)syscall(call, folder, path, argument);
    struct stat made = {0};
    if (seen && result == 0 && kind == 'm') stat(full, &made);
    if (seen && result == 0) record(kind, (uint64_t)made.st_ino, 0, 0, full, NULL, NULL, 0);
    if (seen) unlock_log();
    done(what);
    return result;
}

int unlink(const char *path) { return one_name('u', SYS_unlinkat, AT_FDCWD, path, 0); }
int unlinkat(int folder, const char *path, int flags) { return one_name('u', SYS_unlinkat, folder, path, flags); }
int rmdir(const char *path) { return one_name('u', SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR); }
int mkdir(const char *path, mode_t mode) { return one_name('m', SYS_mkdirat, AT_FDCWD, path, (int)mode); }
int mkdirat(int folder, const char *path, mode_t mode) { return one_name('m', SYS_mkdirat, folder, path, (int)mode); }

/* Locks. */

int flock(int fd, int operation) {
    int what = watched(fd) && !(operation & LOCK_UN) ? step('k', names[fd]) : GO_ON;
    if (what == REFUSE) return -1;
    int result = (int)syscall(SYS_flock, fd, operation);
    done(what);
    return result;
}

static int controlled(int fd, int command, void *argument) {
    int locks = (command == F_SETLK || command == F_SETLKW) && ((struct flock *)argument)->l_type != F_UNLCK;
    int what = locks && watched(fd) ? step('k', names[fd]) : GO_ON;
    if (what == REFUSE) return -1;
    int result = (int)syscall(SYS_fcntl, fd, command, argument);
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) twin(fd, result);
    done(what);
    return result;
}

#define CONTROLS(name)                                                                                                 \
    int name(int fd, int command, ...) {                                                                               \
        va_list more;                                                                                                  \
        va_start(more, command);                                                                                       \
        void *argument = va_arg(more, void *);                                                                         \
        va_end(more);                                                                                                  \
        return controlled(fd, command, argument);                                                                      \
    }
CONTROLS(fcntl)
CONTROLS(fcntl64)
