-- Replaces all users by those under temporary keys. KEYS: ver, user, name, log, info, uid, temporary user and name.
-- ARGV: description of the realm, highest number in the snapshot, highest user, and the expected number if there is one.
local current = redis.call('GET', KEYS[1]) or '0'
if ARGV[4] and ARGV[4] ~= current then
  redis.call('DEL', KEYS[7], KEYS[8])
  return {'conflict', current}
end
local head = tonumber(current)
local number = math.max(head, tonumber(ARGV[2])) + 1
redis.call('DEL', KEYS[2], KEYS[3], KEYS[4])
if redis.call('EXISTS', KEYS[7]) == 1 then
  redis.call('RENAME', KEYS[7], KEYS[2])
  redis.call('PERSIST', KEYS[2])
end
if redis.call('EXISTS', KEYS[8]) == 1 then
  redis.call('RENAME', KEYS[8], KEYS[3])
  redis.call('PERSIST', KEYS[3])
end
redis.call('SET', KEYS[5], ARGV[1])
if tonumber(redis.call('GET', KEYS[6]) or '0') < tonumber(ARGV[3]) then redis.call('SET', KEYS[6], ARGV[3]) end
local last = string.format('%.0f', number)
redis.call('XADD', KEYS[4], last .. '-0', 'op', 'restored', 'id', '0', 'rec', '')
redis.call('SET', KEYS[1], last)
return last
