/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/flow/space.c. */
#include <sys/wait.h>
#include <unistd.h>

#include "support/flow_unit.h"

enum { MIB = 1 << 20 };

static bool has_no_addresses, has_no_memory, has_no_populate;

void *__real_mmap64(void *at, size_t n, int prot, int flags, int fd, off_t off);
void *__wrap_mmap64(void *at, size_t n, int prot, int flags, int fd, off_t off);
int __real_mprotect(void *at, size_t n, int prot);
int __wrap_mprotect(void *at, size_t n, int prot);
int __real_madvise(void *at, size_t n, int advice);
int __wrap_madvise(void *at, size_t n, int advice);

void *__wrap_mmap64(void *at, size_t n, int prot, int flags, int fd, off_t off)
{
	if (has_no_addresses)
		return MAP_FAILED;
	return __real_mmap64(at, n, prot, flags, fd, off);
}

int __wrap_mprotect(void *at, size_t n, int prot)
{
	return has_no_memory ? -1 : __real_mprotect(at, n, prot);
}

int __wrap_madvise(void *at, size_t n, int advice)
{
	if (has_no_populate && advice == 23 /* MADV_POPULATE_WRITE */) {
		errno = EINVAL;
		return -1;
	}
	return __real_madvise(at, n, advice);
}

TEST(memory_grows_by_steps)
{
	struct mri_space space;

	assert_int_equal(mri_space_reserve(&space, 5 * MIB), 0);
	assert_int_equal((uintptr_t)space.base % MRI_SPACE_STEP, 0);
	assert_int_equal(space.max_bytes, 6 * MIB);
	assert_true(mri_space_ready(&space, 1));
	assert_int_equal(space.ready_bytes, 2 * MIB);
	assert_true(mri_space_ready(&space, 2 * MIB));
	assert_int_equal(space.ready_bytes, 2 * MIB);
	assert_int_equal(resident_bytes(space.base, 6 * MIB), 0);
	/* The first step is in small pages, so a little is little. */
	space.base[0] = 1;
	assert_int_equal(resident_bytes(space.base, 6 * MIB), 4096);
	assert_true(mri_space_ready(&space, 2 * MIB + 1));
	assert_int_equal(space.ready_bytes, 4 * MIB);
	space.base[4 * MIB - 1] = 2;
	assert_true(mri_space_ready(&space, 6 * MIB));
	assert_false(mri_space_ready(&space, 6 * MIB + 1));
	mri_space_free(&space);
	assert_null(space.base);
	mri_space_free(&space);
}

TEST(unused_memory_is_returned)
{
	struct mri_space space;

	assert_int_equal(mri_space_reserve(&space, 4 * MIB), 0);
	assert_true(mri_space_ready(&space, 4 * MIB));
	memset(space.base, 0xff, 4 * MIB);
	mri_space_give_back(&space, 64 << 10, 4 * MIB);
	assert_int_equal(resident_bytes(space.base, 4 * MIB), 64 << 10);
	assert_int_equal(space.base[(64 << 10) - 1], 0xff);
	assert_int_equal(space.base[64 << 10], 0);
	assert_int_equal(space.base[4 * MIB - 1], 0);
	/* All of the huge page goes of which a byte was written. */
	space.base[2 * MIB] = 1;
	mri_space_give_back(&space, 0, 2 * MIB + 1);
	assert_int_equal(resident_bytes(space.base, 4 * MIB), 0);
	mri_space_free(&space);
}

TEST(touched_memory_is_there)
{
	struct mri_space space;

	for (int i = 0; i < 2; i++) {
		has_no_populate = i == 1;
		assert_int_equal(mri_space_reserve(&space, 4 * MIB), 0);
		assert_true(mri_space_ready(&space, 4 * MIB));
		mri_space_touch(&space, 0);
		assert_int_equal(resident_bytes(space.base, 4 * MIB), 0);
		mri_space_touch(&space, 5000);
		assert_int_equal(resident_bytes(space.base, 4 * MIB), 8192);
		mri_space_touch(&space, 4 * MIB);
		assert_int_equal(resident_bytes(space.base, 4 * MIB), 4 * MIB);
		mri_space_free(&space);
	}
	has_no_populate = false;
}

TEST(a_failed_reservation_can_be_repeated)
{
	struct mri_space space = { 0 };

	has_no_addresses = true;
	assert_int_equal(mri_space_reserve(&space, 4 * MIB), -ENOMEM);
	has_no_addresses = false;
	assert_null(space.base);
	assert_int_equal(mri_space_reserve(&space, 4 * MIB), 0);
	assert_true(mri_space_ready(&space, 1));
	has_no_memory = true;
	assert_true(mri_space_ready(&space, 2 * MIB));
	assert_false(mri_space_ready(&space, 2 * MIB + 1));
	assert_int_equal(space.ready_bytes, 2 * MIB);
	has_no_memory = false;
	assert_true(mri_space_ready(&space, 2 * MIB + 1));
	space.base[4 * MIB - 1] = 1;
	mri_space_free(&space);
}

TEST(a_forked_child_has_no_mapping)
{
	struct mri_space space;
	unsigned char page;
	int status;
	pid_t pid;

#ifdef __SANITIZE_THREAD__
	skip(); /* its own memory in the child may lie in the hole */
#endif
	assert_int_equal(mri_space_reserve(&space, 4 * MIB), 0);
	assert_true(mri_space_ready(&space, 4 * MIB));
	pid = fork();
	if (pid == 0)
		_exit(mincore(space.base, 4096, &page) < 0 &&
		      mincore(space.base + 2 * MIB, 4096, &page) < 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 1);
	mri_space_free(&space);
}

TEST(memory_is_taken_in_whole_pages)
{
	assert_int_equal(mri_space_taken(0, 0), 0);
	assert_int_equal(mri_space_taken(0, 1), 4096);
	assert_int_equal(mri_space_taken(0, 4097), 8192);
	assert_int_equal(mri_space_taken(0, 2 * MIB), 2 * MIB);
	assert_int_equal(mri_space_taken(0, 2 * MIB + 1), 4 * MIB);
	assert_int_equal(mri_space_taken(2 * MIB, 2 * MIB), 0);
	assert_int_equal(mri_space_taken(2 * MIB, 2 * MIB + 1), 2 * MIB);
}
