-- Writes changes together. KEYS: ver, user, name, log, info.
-- ARGV: expected number, maximum length of the log, then operation, target and record of each change.
if redis.call('EXISTS', KEYS[5]) == 0 then return {'norealm'} end
local head = redis.call('GET', KEYS[1]) or '0'
if head ~= ARGV[1] then return {'conflict', head} end

-- What the changes leave: digest of the name by user (false: deleted), user by digest, record by user.
local digests, owners, records = {}, {}, {}
for i = 3, #ARGV, 3 do
  local op, id, record = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  if op == 'put' or op == 'del' then
    local current = digests[id]
    if current == nil then
      local old = redis.call('HGET', KEYS[2], id)
      current = old and string.sub(old, 2, 17)
    end
    if op == 'put' then
      local digest = string.sub(record, 2, 17)
      local owner = owners[digest]
      if owner == nil then owner = redis.call('HGET', KEYS[3], digest) end
      if owner and owner ~= id then return {'taken'} end
      if current then owners[current] = false end
      owners[digest] = id
      digests[id] = digest
      records[id] = record
    else
      if not current then return {'gone'} end
      owners[current] = false
      digests[id] = false
      records[id] = false
    end
  end
end

-- The log first: it refuses numbers that are not higher than its last, before anything else is written.
local number = tonumber(head)
for i = 3, #ARGV, 3 do
  number = number + 1
  redis.call('XADD', KEYS[4], 'MAXLEN', '~', ARGV[2], string.format('%.0f-0', number),
    'op', ARGV[i], 'id', ARGV[i + 1], 'rec', ARGV[i + 2])
end
for id, record in pairs(records) do
  if record then redis.call('HSET', KEYS[2], id, record) else redis.call('HDEL', KEYS[2], id) end
end
for digest, owner in pairs(owners) do
  if owner then redis.call('HSET', KEYS[3], digest, owner) else redis.call('HDEL', KEYS[3], digest) end
end
local last = string.format('%.0f', number)
redis.call('SET', KEYS[1], last)
return {'ok', last}
